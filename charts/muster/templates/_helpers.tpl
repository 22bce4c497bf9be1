{{/* The name of everything that is installed: the release's, with "muster" in it. */}}
{{- define "muster.fullname" -}}
{{- if contains "muster" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-muster" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of every object; the argument is a dict of root and component. */}}
{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* Labels by which a Deployment and the Service find their pods. */}}
{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "muster.image" -}}
{{- $repository := required "image.repository is not set: push muster's image to a registry of your own and name it" .Values.image.repository -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion | toString) -}}
{{- end -}}

{{/* Namespaces that no webhook sees. */}}
{{- define "muster.namespaceSelector" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      - kube-system
      - {{ .Release.Namespace | quote }}
      {{- range .Values.excludedNamespaces }}
      - {{ . | quote }}
      {{- end }}
{{- end -}}

{{- define "muster.clientConfig" -}}
service:
  namespace: {{ .Release.Namespace }}
  name: {{ include "muster.fullname" . }}-webhook
  port: {{ .Values.webhook.service.port }}
  path: {{ .path }}
{{- end -}}

{{/* Environment and security of both containers. */}}
{{- define "muster.container" -}}
image: {{ include "muster.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - name: tmp
    mountPath: /tmp
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 2
{{- end -}}

{{- define "muster.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}
