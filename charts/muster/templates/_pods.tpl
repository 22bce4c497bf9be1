{{/*
What the pods of both Deployments have in common. The argument is a dict of root, component, the values of that component,
and whether it serves certificates (certificates).
*/}}

{{- define "muster.podMetadata" -}}
labels: {{- include "muster.labels" (merge (dict "labels" .values.podLabels) .) | nindent 2 }}
{{- $annotations := deepCopy .values.podAnnotations }}
{{- if not (or .root.Values.podMonitor.enabled .root.Values.serviceMonitor.enabled) }}
# For a Prometheus that finds its targets by annotations of pods, as its own chart configures it; a monitor finds them itself.
{{- $_ := merge $annotations (dict "prometheus.io/scrape" "true" "prometheus.io/port" (.values.ports.health | toString)) }}
{{- end }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Where the pods run, and with which account. */}}
{{- define "muster.podSpec" -}}
serviceAccountName: {{ include "muster.serviceAccount" . | quote }}
{{- if .values.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
securityContext: {{- include "muster.podSecurity" . | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
nodeSelector: {{- include "muster.nodeSelector" .values | nindent 2 }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- /* Of an update the new pods are spread among themselves. */}}
  {{- $among := dict "matchLabelKeys" (list "pod-template-hash") "labelSelector" (dict "matchLabels" (include "muster.selector" $ | fromYaml)) }}
  {{- range . }}
  - {{ ternary . (merge (deepCopy .) $among) (hasKey . "labelSelector") | toYaml | nindent 4 | trim }}
  {{- end }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {medium: Memory, sizeLimit: 16Mi}
  {{- if and .certificates (include "muster.othersCertificates" .root) }}
  - name: certificates
    secret:
      secretName: {{ include "muster.webhookSecret" .root | quote }}
  {{- end }}
  {{- with .values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The container, without its command and ports. */}}
{{- define "muster.container" -}}
image: {{ include "muster.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  {{- with .values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources: {{- toYaml .values.resources | nindent 2 }}
{{ include "muster.containerSecurity" . }}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- if and .certificates (include "muster.othersCertificates" .root) }}
  - name: certificates
    mountPath: /etc/muster/certificates
    readOnly: true
  {{- end }}
  {{- with .values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
startupProbe: {{- merge (dict "httpGet" (dict "path" "/healthz" "port" "health")) .values.probes.startup | toYaml | nindent 2 }}
livenessProbe: {{- merge (dict "httpGet" (dict "path" "/healthz" "port" "health")) .values.probes.liveness | toYaml | nindent 2 }}
readinessProbe: {{- merge (dict "httpGet" (dict "path" "/readyz" "port" "health")) .values.probes.readiness | toYaml | nindent 2 }}
{{- end -}}

{{/* The image is built for Linux. */}}
{{- define "muster.nodeSelector" -}}
{{- merge (deepCopy .nodeSelector) (dict "kubernetes.io/os" "linux") | toYaml -}}
{{- end -}}

{{/*
For the pods of the hooks and of `helm test`: the nodes that a process may have. Without its affinity to other pods, which
is about its replicas: where every node has one, a pod that keeps away from them would find no node.
*/}}
{{- define "muster.nodeAffinity" -}}
{{- with .affinity.nodeAffinity -}}
affinity: {{- dict "nodeAffinity" . | toYaml | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Of all containers, those of the hooks and of `helm test` too; the argument is the root, or has one. */}}
{{- define "muster.containerSecurity" -}}
{{- with (.root | default .).Values.securityContext -}}
securityContext: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "muster.podSecurity" -}}
{{- (.root | default .).Values.podSecurityContext | default dict | toYaml -}}
{{- end -}}
