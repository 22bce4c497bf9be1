"""Of every family a manifest, and the whole entry that `muster plan` makes of it.

The entries are stable: whoever must change one changes what users' programs read.
"""

from __future__ import annotations

__all__ = ["ENTRIES"]

RAY = """\
apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: train
  namespace: team
  labels: {volcano.sh/queue-name: q, ray.io/priority-class-name: high}
spec:
  rayClusterSpec:
    headGroupSpec:
      template: {spec: {containers: [{name: head, resources: {requests: {cpu: 1, memory: 2Gi}}}]}}
    workerGroupSpecs:
      - groupName: gpu
        replicas: 2
        template: {spec: {containers: [{name: w, resources: {limits: {cpu: 4, nvidia.com/gpu: 1}}}]}}
"""

RAY_ENTRY = """\
workload: {apiVersion: ray.io/v1, kind: RayJob, namespace: team, name: train}
intent:
  scheduler: volcano
  queue: q
  priorityClassName: high
  from:
    queue: metadata.labels[volcano.sh/queue-name]
    priorityClassName: metadata.labels[ray.io/priority-class-name]
podGroup:
  apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata:
    name: ray-train-xxxxx-pg
    namespace: team
    labels: {app.kubernetes.io/managed-by: muster}
    annotations: {}
    ownerReferences:
      - {apiVersion: ray.io/v1, kind: RayCluster, name: train-xxxxx, controller: true, blockOwnerDeletion: true}
  spec:
    minMember: 3
    minTaskMember: {headgroup: 1, gpu: 2}
    minResources: {cpu: '9', memory: 2560Mi, nvidia.com/gpu: '2'}
    queue: q
    priorityClassName: high
roles:
  - name: headgroup
    replicas: 1
    minMember: 1
    gated: true
    requests: {cpu: '1', memory: 2Gi}
    patch:
      - {op: add, path: /metadata/labels/volcano.sh~1queue-name, value: q}
      - {op: add, path: /metadata/labels/muster.dev~1gang, value: ray-train-xxxxx-pg}
      - op: add
        path: /metadata/annotations
        value: {scheduling.k8s.io/group-name: ray-train-xxxxx-pg, volcano.sh/task-spec: headgroup}
      - {op: add, path: /spec/schedulerName, value: volcano}
      - {op: add, path: /spec/priorityClassName, value: high}
      - {op: remove, path: /spec/priority}
      - {op: remove, path: /spec/preemptionPolicy}
      - {op: add, path: /spec/schedulingGates, value: [{name: muster.dev/gang}]}
  - name: gpu
    replicas: 2
    minMember: 2
    gated: true
    requests: {cpu: '4', memory: 256Mi, nvidia.com/gpu: '1'}
    patch:
      - {op: add, path: /metadata/labels/volcano.sh~1queue-name, value: q}
      - {op: add, path: /metadata/labels/muster.dev~1gang, value: ray-train-xxxxx-pg}
      - op: add
        path: /metadata/annotations
        value: {scheduling.k8s.io/group-name: ray-train-xxxxx-pg, volcano.sh/task-spec: gpu}
      - {op: add, path: /spec/schedulerName, value: volcano}
      - {op: add, path: /spec/priorityClassName, value: high}
      - {op: remove, path: /spec/priority}
      - {op: remove, path: /spec/preemptionPolicy}
      - {op: add, path: /spec/schedulingGates, value: [{name: muster.dev/gang}]}
verdict:
  allowed: true
  reason: ''
  message: 'no Queue in the input: not judged by what its queue can hold'
  warnings: []
"""

TRAINING_OPERATOR = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {generateName: train-}
spec:
  elasticPolicy: {minReplicas: 1}
  runPolicy: {schedulingPolicy: {queue: q, minAvailable: 2}}
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: pytorch, resources: {requests: {cpu: 2}}}]}}}
    Worker:
      replicas: 3
      template:
        metadata: {labels: {app: train}, annotations: {note: mine}}
        spec: {priorityClassName: low, containers: [{name: pytorch, resources: {requests: {cpu: 1}}}]}
"""

TRAINING_OPERATOR_ENTRY = """\
workload: {apiVersion: kubeflow.org/v1, kind: PyTorchJob, namespace: default, name: train-xxxxx}
intent:
  scheduler: volcano
  queue: q
  priorityClassName: low
  from:
    queue: spec.runPolicy.schedulingPolicy.queue
    priorityClassName: spec.pytorchReplicaSpecs.Worker.template.spec.priorityClassName
podGroup:
  apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata:
    name: train-xxxxx
    namespace: default
    labels: {app.kubernetes.io/managed-by: muster}
    annotations: {}
    ownerReferences:
      - apiVersion: kubeflow.org/v1
        kind: PyTorchJob
        name: train-xxxxx
        controller: true
        blockOwnerDeletion: true
  spec:
    minMember: 2
    minTaskMember: {master: 1, worker: 1}
    minResources: {cpu: '3', memory: 10Mi}
    queue: q
    priorityClassName: low
roles:
  - name: master
    replicas: 1
    minMember: 1
    gated: true
    requests: {cpu: '2'}
    patch:
      - {op: add, path: /metadata/labels/volcano.sh~1queue-name, value: q}
      - {op: add, path: /metadata/labels/muster.dev~1gang, value: train-xxxxx}
      - op: add
        path: /metadata/annotations
        value:
          scheduling.k8s.io/group-name: train-xxxxx
          volcano.sh/task-spec: master
          volcano.sh/preemptable: 'false'
      - {op: add, path: /spec/schedulerName, value: volcano}
      - {op: add, path: /spec/schedulingGates, value: [{name: muster.dev/gang}]}
  - name: worker
    replicas: 3
    minMember: 1
    gated: true
    requests: {cpu: '1', memory: 10Mi}
    patch:
      - {op: add, path: /metadata/labels/volcano.sh~1queue-name, value: q}
      - {op: add, path: /metadata/labels/muster.dev~1gang, value: train-xxxxx}
      - {op: add, path: /metadata/annotations/scheduling.k8s.io~1group-name, value: train-xxxxx}
      - {op: add, path: /metadata/annotations/volcano.sh~1task-spec, value: worker}
      - {op: add, path: /spec/schedulerName, value: volcano}
      - {op: add, path: /spec/schedulingGates, value: [{name: muster.dev/gang}]}
verdict:
  allowed: true
  reason: ''
  message: 'no Queue in the input: not judged by what its queue can hold'
  warnings: []
"""

MPI_OPERATOR = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi, annotations: {scheduling.volcano.sh/queue-name: q}}
spec:
  launcherCreationPolicy: WaitForWorkersReady
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: mpi, resources: {requests: {cpu: 500m}}}]}}}
    Worker: {replicas: 2, template: {spec: {schedulerName: volcano, containers: [{name: mpi}]}}}
"""

MPI_OPERATOR_ENTRY = """\
workload: {apiVersion: kubeflow.org/v2beta1, kind: MPIJob, namespace: default, name: pi}
intent:
  scheduler: volcano
  queue: q
  priorityClassName: ''
  from:
    queue: metadata.annotations[scheduling.volcano.sh/queue-name]
    scheduler: spec.mpiReplicaSpecs.Worker.template.spec.schedulerName
podGroup:
  apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata:
    name: pi
    namespace: default
    labels: {app.kubernetes.io/managed-by: muster}
    annotations: {scheduling.volcano.sh/queue-name: q}
    ownerReferences:
      - {apiVersion: kubeflow.org/v2beta1, kind: MPIJob, name: pi, controller: true, blockOwnerDeletion: true}
  spec:
    minMember: 2
    minTaskMember: {worker: 2}
    minResources: {cpu: 500m}
    queue: q
roles:
  - name: launcher
    replicas: 1
    minMember: 0
    gated: false
    requests: {cpu: 500m}
    patch:
      - {op: add, path: /metadata/labels/volcano.sh~1queue-name, value: q}
      - {op: add, path: /metadata/labels/muster.dev~1gang, value: pi}
      - op: add
        path: /metadata/annotations
        value:
          scheduling.k8s.io/group-name: pi
          volcano.sh/task-spec: launcher
          volcano.sh/preemptable: 'false'
      - {op: add, path: /spec/schedulerName, value: volcano}
  - name: worker
    replicas: 2
    minMember: 2
    gated: true
    requests: {}
    patch:
      - {op: add, path: /metadata/labels/volcano.sh~1queue-name, value: q}
      - {op: add, path: /metadata/labels/muster.dev~1gang, value: pi}
      - op: add
        path: /metadata/annotations
        value:
          scheduling.k8s.io/group-name: pi
          volcano.sh/task-spec: worker
          volcano.sh/preemptable: 'false'
      - {op: add, path: /spec/schedulingGates, value: [{name: muster.dev/gang}]}
verdict:
  allowed: true
  reason: ''
  message: 'no Queue in the input: not judged by what its queue can hold'
  warnings:
  - 'spec.mpiReplicaSpecs.Worker.template.spec.containers: pods of worker request nothing, so that no queue keeps room
    for them; give their containers requests'
"""

JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: sweep, labels: {ray.io/scheduler-name: scheduler-plugins-scheduler}}
spec:
  replicatedJobs:
    - name: workers
      replicas: 2
      template:
        spec:
          parallelism: 2
          completions: 2
          template: {spec: {containers: [{name: c, resources: {requests: {memory: 1G}}}]}}
"""

JOBSET_ENTRY = """\
workload: {apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, namespace: default, name: sweep}
intent:
  scheduler: scheduler-plugins-scheduler
  queue: default
  priorityClassName: ''
  from: {scheduler: 'metadata.labels[ray.io/scheduler-name]'}
podGroup:
  apiVersion: scheduling.x-k8s.io/v1alpha1
  kind: PodGroup
  metadata:
    name: sweep
    namespace: default
    labels: {app.kubernetes.io/managed-by: muster}
    annotations: {}
    ownerReferences:
      - apiVersion: jobset.x-k8s.io/v1alpha2
        kind: JobSet
        name: sweep
        controller: true
        blockOwnerDeletion: true
  spec:
    minMember: 4
    minResources: {memory: 4G}
roles:
  - name: workers
    replicas: 4
    minMember: 4
    gated: true
    requests: {memory: 1G}
    patch:
      - {op: add, path: /metadata/labels/scheduling.x-k8s.io~1pod-group, value: sweep}
      - {op: add, path: /metadata/labels/muster.dev~1gang, value: sweep}
      - {op: add, path: /spec/schedulerName, value: scheduler-plugins-scheduler}
      - {op: add, path: /spec/schedulingGates, value: [{name: muster.dev/gang}]}
verdict:
  allowed: true
  reason: ''
  message: 'scheduler-plugins-scheduler knows no queues: not judged by room'
  warnings: []
"""

VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: job-1}
spec:
  minAvailable: 1
  schedulerName: volcano
  queue: gone
  tasks:
    - name: main
      replicas: 1
      template: {spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q}
"""

VOLCANO_ENTRY = """\
workload: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, namespace: default, name: job-1}
intent:
  scheduler: volcano
  queue: gone
  priorityClassName: ''
  from: {queue: spec.queue, scheduler: spec.schedulerName}
podGroup:
  apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata:
    name: job-1-xxxxx
    namespace: default
    labels: {app.kubernetes.io/managed-by: muster}
    annotations: {}
    ownerReferences:
      - {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: job-1, controller: true, blockOwnerDeletion: true}
  spec:
    minMember: 1
    minTaskMember: {main: 1}
    minResources: {cpu: '3'}
    queue: gone
roles: [{name: main, replicas: 1, minMember: 1, gated: false, requests: {cpu: '3'}, patch: []}]
verdict:
  allowed: false
  reason: QueueNotFound
  message: 'spec.queue: queue "gone" does not exist; name an existing queue or create it first'
  warnings: []
"""

PLAIN = """\
apiVersion: batch/v1
kind: Job
metadata: {name: simulation}
spec:
  parallelism: 3
  template:
    metadata:
      labels: {muster.dev/gang: simulation, volcano.sh/queue-name: q}
      annotations: {muster.dev/gang-size: "3"}
    spec: {schedulingGates: [{name: other}], containers: [{name: c, resources: {requests: {cpu: 1}}}]}
"""

PLAIN_ENTRY = """\
workload: {apiVersion: batch/v1, kind: Job, namespace: default, name: simulation}
intent:
  scheduler: volcano
  queue: q
  priorityClassName: ''
  from: {queue: 'spec.template.metadata.labels[volcano.sh/queue-name]'}
podGroup:
  apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata:
    name: simulation
    namespace: default
    labels: {app.kubernetes.io/managed-by: muster}
  spec:
    minMember: 3
    minTaskMember: {member: 3}
    minResources: {cpu: '3'}
    queue: q
roles:
  - name: member
    replicas: 3
    minMember: 3
    gated: true
    requests: {cpu: '1'}
    patch:
      - {op: add, path: /metadata/annotations/scheduling.k8s.io~1group-name, value: simulation}
      - {op: add, path: /metadata/annotations/volcano.sh~1task-spec, value: member}
      - {op: add, path: /spec/schedulerName, value: volcano}
      - {op: add, path: /spec/schedulingGates/-, value: {name: muster.dev/gang}}
verdict:
  allowed: true
  reason: ''
  message: 'no Queue in the input: not judged by what its queue can hold'
  warnings: []
"""

ALONE = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: theirs}
spec: {headGroupSpec: {template: {spec: {containers: [{name: head}]}}}}
"""

ALONE_ENTRY = """\
workload: {apiVersion: ray.io/v1, kind: RayCluster, namespace: default, name: theirs}
intent: null
podGroup: null
roles: []
verdict: {allowed: true, reason: '', message: muster leaves this workload alone, warnings: []}
"""

TRAINER = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llm, labels: {volcano.sh/queue-name: q}}
spec:
  runtimeRef: {name: torch}
  trainer: {numNodes: 2}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec: {template: {spec: {containers: [{name: node, resources: {requests: {cpu: 2}}}]}}}
"""

TRAINER_ENTRY = """\
workload: {apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, namespace: default, name: llm}
intent:
  scheduler: volcano
  queue: q
  priorityClassName: ''
  from: {queue: 'metadata.labels[volcano.sh/queue-name]'}
podGroup:
  apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata:
    name: llm
    namespace: default
    labels: {app.kubernetes.io/managed-by: muster}
    annotations: {}
    ownerReferences:
      - apiVersion: trainer.kubeflow.org/v1alpha1
        kind: TrainJob
        name: llm
        controller: true
        blockOwnerDeletion: true
  spec:
    minMember: 2
    minTaskMember: {node: 2}
    minResources: {cpu: '4'}
    queue: q
roles:
  - name: node
    replicas: 2
    minMember: 2
    gated: true
    requests: {cpu: '2'}
    patch:
      - {op: add, path: /metadata/labels/volcano.sh~1queue-name, value: q}
      - {op: add, path: /metadata/labels/muster.dev~1gang, value: llm}
      - op: add
        path: /metadata/annotations
        value: {scheduling.k8s.io/group-name: llm, volcano.sh/task-spec: node}
      - {op: add, path: /spec/schedulerName, value: volcano}
      - {op: add, path: /spec/schedulingGates, value: [{name: muster.dev/gang}]}
verdict:
  allowed: true
  reason: ''
  message: 'no Queue in the input: not judged by what its queue can hold'
  warnings: []
"""

ENTRIES = {
    "Ray": (RAY, RAY_ENTRY),
    "Training operator": (TRAINING_OPERATOR, TRAINING_OPERATOR_ENTRY),
    "MPI operator": (MPI_OPERATOR, MPI_OPERATOR_ENTRY),
    "JobSet, and coscheduling": (JOBSET, JOBSET_ENTRY),
    "Trainer": (TRAINER, TRAINER_ENTRY),
    "Volcano's own, refused": (VOLCANO, VOLCANO_ENTRY),
    "plain Job": (PLAIN, PLAIN_ENTRY),
    "left alone": (ALONE, ALONE_ENTRY),
}
