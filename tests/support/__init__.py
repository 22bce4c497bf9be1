"""Helpers of the tests: one of each, in the package that its subject names. Every module stands in this index.

Manifests: `manifests.applied` has what users apply, `manifests.observed` what a watch shows. The cases of conformance
and the worlds of the fuzzer are the subjects of those suites and stay there. Clients: `hack.testbed.api.Api` asks an
apiserver, `cluster.verbs.Verbs` has kubectl's verbs on top of it, which `cluster.scene.Scene`, `cluster.desk.Desk`,
`cluster.policy_actors.Acting` and `faults.things.Things` are, and `faults.apiserver` stands in front of one or in its
place.

chart: The chart as helm renders it, and the programs that judge the result.
- kept: Results that are the same whenever they are made of the same: kept from one run to the next, for every
  checkout.
- kinds: charts/muster/files/kinds.yaml: the lists of the templates, as muster's own modules have them.
- kubeconform: The real kubeconform, strict, with the schemas of every minor version of Kubernetes that the chart is
  for.
- network_policies: What NetworkPolicies let through, in the eyes of cyclonus: the model that network plugins are
  compared with.
- rendered: What a chart renders, found by kind and name; and what the programs are that render and read it.
- renderings: Every rendering of the chart that a test looks at: `renderings.json`, which kubeconform judges as a
  whole.
- templates: A single template of the chart, rendered to be applied.

cli: The command line run in this process, and what it reads.
- browser: A real browser that looks at a page: headless Chromium, at any width, light or dark, with and without
  scripts.
- command: Runs the command as its users do, in this process.
- connections: The TCP connections that this process attempts, by the audit events of the interpreter.
- doctor: `muster doctor` as tests run it, and ways to break what it looks at.
- doctor_snapshots: A cluster in order as the doctor sees it, and what is changed in it by a test.
- forked: The command in processes of its own with bounded memory and time, forked from one that has imported it
  already.
- in_process: The command line in this process, which has it imported already: a second less than a process of its
  own.
- page: The page as it is served, for a cluster that a test made up: real sockets, an apiserver that does as told.
- page_scene: A cluster for eyes: queues of two teams in which gangs run, wait and assemble, and what the apiserver
  adds.
- plan_entries: Of every family a manifest, `entries/*.yaml`, and the whole entry that `muster plan` makes of it,
  `*.entry.yaml`.
- terminal: The command on a real terminal, a pseudo terminal, with an answer to its question.

cluster: Tests on a control plane: fixtures, what happens there on record, and ways to act on it.
- access_reviews: Thousands of SelfSubjectAccessReviews: what the apiserver's own authorizer answers to a token.
- added_operators: Operators that come to a testbed which was started without them, so that their tests need no
  testbed of their own.
- admission_stream: Admission calls that go on while something happens to muster, each on record.
- backends: Clusters with other schedulers, or with Kueue: what a testbed is asked for, and the objects that their
  users write.
- background: What goes on in threads of its own as long as a block lasts.
- chaos: Chaos: a plan's steps are taken in a cluster, and in the end nothing is half started, lost or stuck.
- chaos_plan: What happens in the chaos test, and in which order: decided by a seed alone, before anything happens.
- claim_terms: PodGroups and queues of every kind, as the judge of `open_claims` reads them: in the words of
  Volcano's.
- creations: Objects that are created all the time while something happens to muster, and what became of each call.
- desk: One test's namespace at a bare apiserver: the test itself plays the operators and makes the pods.
- former_versions: Former versions of muster, which run beside this one while an upgrade or a rollback is under way.
- gang_lifecycle: What every kind of workload goes through: it waits as a whole, runs as a whole, ends, and gives its
  place back.
- gang_queues: The chart's CRD of GangQueues, on a testbed whose muster was installed without it.
- grants: RBAC that tests grant, in a namespace or in the whole cluster.
- helm_release: An installed release, as its users see it: helm, kubectl, and the processes in its pods.
- image_fixtures: The image as it was built, and its files in a folder, whose programs are run as a container runtime
  would.
- judge: Who asks the judge of `open_claims`: every scene at the end of its test, whether the test does or not.
- leaders: The controller that leads, and its end.
- kernel_connections: Who really speaks with whom: the connections that the kernel sees around a real node, noted with
  nftables.
- kueue_scene: A scene whose gangs Kueue admits: a namespace that says so, with a LocalQueue and a ClusterQueue of its
  own.
- neighbours: Two versions of the webhook beside each other: a rollout that stands still, and what each replica
  answers.
- nudges: How soon a workload has its pods again after an outage of the webhook, counted in the controller's own
  nudges.
- objects: What stands in the objects of a cluster, by the words of tests: gates, node, phase, state.
- other_policies: The chart's admission policies a second time, about labels and annotations of their own.
- open_claims: What muster opened, against the limits of the queues: the ledger's promise, judged from a scene's
  record alone.
- operations_guide: What each command of docs/operations.md is to do: run in this order, on a real node, by
  test_operations_guide.py.
- other_webhooks: Other people's mutating webhooks, served by the test itself: sidecar injectors and the like.
- pod_load: Pods at a steady rate, made by the real apiserver while something happens to the webhook, and what came of
  each.
- policy_actors: Who does what in a namespace with what the chart's policies see: a pod of a gang, a PodGroup, a
  patch.
- propagation: Waits for what the apiserver and muster's webhook hear of a moment later, each by a watch of its own.
- ray_dashboards: Answers for Ray's dashboards: KubeRay asks them how jobs and services fare, and here no Ray runs in
  the pods.
- rbac: Rights of ServiceAccounts: as roles in manifests grant them, and as docs/security.md lists them.
- pair_scene: A scene in a cluster without Volcano: PodGroups of another scheduler, and GangQueues.
- pair_stories: Stories of docs/seeds.md as each scheduler beside Volcano must tell them, in muster's own queues.
- proxied_page: The page of a release in its pod, by the apiserver's service proxy and by `kubectl proxy`.
- registry: A real registry on loopback (distribution): what is published there, and what a node pulls from it.
- recorder: Records every state of a namespace's objects from the apiserver's own watches, so that order can be
  proved.
- reservation_story: The story of a reservation, as each scheduler must tell it.
- reviews: How many reviews the webhook has answered, by its own metrics.
- rollout: The phases of a rollout, from the record of its pods: when the first new one was Ready, and the last old
  one gone.
- scene: One test's part of the cluster: a namespace, its queues, everything that happens in it on record.
- steps: How much work of muster's a step of a scene took: a slowdown that no deadline shows, in units that load
  leaves alone.
- testbed_fixtures: Fixtures of every test that needs a real cluster. A testbed that cannot start is an error, never a
  skip.
- timeline: The order of what happened to gangs, in words, from a scene's record.
- trust: The Secret of the webhook's certificate, what is served of it, and what the apiserver is told to trust.
- verbs: kubectl's verbs on one namespace, by calls of the apiserver: a process of kubectl costs 0.2 CPU seconds, a
  call 2 ms.

controller: The controller's parts with a client that records what they write.
- bypass_queue: Gangs of so many cpu, one a pod, in line for one queue: a large one, a small one, one that runs.
- recording_client: A client that records what the controller writes, fails on demand, and shows the stores what a
  watch would.
- observations: How often a reconciler looks at its gangs.
- stores: The controller's picture of a cluster, filled with objects as a watch shows them.
- tenants: A tenant who may write PodGroups, and gangs of each gang scheduler that muster writes PodGroups for.
- two_gangs: Two gangs of 3 cpu and a queue of 4: one starts, and the other waits for it.

faults: What goes wrong on the way to the apiserver, and the clock of the event loop.
- apiserver: A small HTTP server that does, on demand, what networks and overloaded servers do.
- leader: A process that leads and writes, as fast as it can, through the controller's own Writer: `python -m
  …leader`.
- loop_clock: The event loop's clock, set forward by a test: what a deadline does is seen at once, and at no other
  moment.
- refused_writes: Has the apiserver refuse some writes of one namespace, or fail at them, which holds a controller at
  one point.
- relay: A way to the apiserver that can be cut: bytes are passed on as they are, until every connection is broken at
  once.
- things: Things: a kind without a schema, so that the apiserver keeps whatever is written; and what tests do with
  them.

manifests: Objects that tests apply, decode or generate.
- applied: Manifests of workloads, written in one line: `ray_cluster("a").label(QUEUE_LABEL, "q").workers(2, cpu="1")`.
- batch: JobSets, and TrainJobs with their runtimes, written in one line.
- families: One small workload of every kind that `muster plan` knows: a leading role of one pod and another of two.
- gangs: Queues with limits, and whole gangs as stores show them, by their names alone.
- generators: Generators for "for all" promises: pods as the webhook meets them, workloads of every kind with any
  numbers.
- kueue: Objects of Kueue's as Kueue writes them: Workloads by their conditions, and ClusterQueues.
- members: Every kind of docs/gangs.md as its operator leaves it: who owns a member, and what the member carries.
- observed: Objects as a watch shows them, for unit tests: the smallest valid one of each kind, with UID and status.
- owner_chains: Chains of owners, as operators make them: each object is controlled by the one before.
- pod_shapes: Pods of many shapes: whatever decides how much room a pod needs, in every combination, written in every
  way.
- quantity_texts: Texts that are, or nearly are, quantities: what people write, and every corner of the apiserver's
  parser.
- train_jobs: TrainJobs and the runtimes they refer to, and what muster reads and judges of both.

pages: Documents that are generated, or compared with what tests saw.
- backends: docs/backends.md: which story runs on which scheduler, and the test that shows it.
- chart_values: charts/muster/README.md, whose table of values is made from the comments of values.yaml.
- blocks: The commands that the pages show: blocks of shell, transcripts, and commands in sentences; and which test runs
  each.
- not_run: Why no test runs a command that a document shows: what it would need, and what shows the same.
- commands: docs/commands.md: every command with its options, as the parser and the man pages have them.
- keys: docs/names.md: every label, annotation and gate, with who writes it, on what, and what it means.
- recorded: What kubectl printed of every state and refusal, and docs/kubectl.md, which shows it.
- walkthrough: A page of commands with their output: each is run, and prints what the page shows.
- denials: An example of every refusal and warning, judged by the real rules, and the page that shows them:
  docs/denials.md.
- metrics: The metrics that the processes have, as their own code describes them.
- named_numbers: The numbers that documents mark: the name of each mark, and the places in the programs that have its
  number.
- numbers: Numbers that documents state: how their marks are read, and where the programs have each number.
- seeds: docs/seeds.md: what the tests of the stories saw, beside what the guides show, and why the two differ.
- surface: What others build on: the names that users, administrators and their programs may rely on, as the code has
  them.
- transcripts: Commands and what they printed, as a page or the demo shows them, apart from what differs each time.
- versions: Which versions the tests run: the table of docs/operations.md, read from the testbed's own go.mod files.

queueing: The facts that a ledger is told, and a model of what follows from them.
- world: What a ledger should know and decide, in plain facts: a model that looks at everything anew each time.

webhook: AdmissionReviews and certificates for tests of the webhook's parts.
- admission_reviews: AdmissionReviews as the apiserver sends them, and a stand-in for the client behind the webhook's
  knowledge.
- certificate_store: The Secret and the two webhook configurations, as an apiserver would keep them, for tests of
  certificates.
"""
