{{/* The name of every installed object: the release's name, with "muster" in it. No name may end with a dash. */}}
{{- define "muster.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if $name -}}
{{- else if .Values.nameOverride -}}
{{- $name = printf "%s-%s" .Release.Name .Values.nameOverride -}}
{{- else if contains "muster" .Release.Name -}}
{{- $name = .Release.Name -}}
{{- else -}}
{{- $name = printf "%s-muster" .Release.Name -}}
{{- end -}}
{{- regexReplaceAll "-+$" (trunc 40 $name) "" -}}
{{- end -}}

{{/*
Fills in values that are not there: with `helm upgrade --reuse-values` those that the release's former chart did not know are
missing. Every template begins with it. files/defaults.json is values.yaml, which no template can read.
*/}}
{{- define "muster.complete" -}}
{{- include "muster.fill" (dict "values" .Values "defaults" (.Files.Get "files/defaults.json" | fromJson)) -}}
{{- include "muster.check" . -}}
{{- end -}}

{{/* Sprig's merge would take false and 0 for missing. Free-form values stay as they are: null removes a limit. */}}
{{- define "muster.fill" -}}
{{- range $key, $default := .defaults -}}
{{- if not (hasKey $.values $key) -}}
{{- $_ := set $.values $key $default -}}
{{- else if and (kindIs "map" $default) (not (has $key (list "resources" "labels" "podSecurityContext" "securityContext"))) -}}
{{- include "muster.fill" (dict "values" (get $.values $key) "defaults" $default) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Labels of every object; the argument is a dict of root, component and, for objects that have a value for it, labels of their
own. These override commonLabels, and neither overrides muster's.
*/}}
{{- define "muster.labels" -}}
{{- $own := include "muster.selector" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- merge $own (.labels | default dict) .root.Values.commonLabels | toYaml -}}
{{- end -}}

{{/* Labels by which a Deployment and the Service find their pods. */}}
{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* The image of the pods; a digest goes before a tag. */}}
{{- define "muster.image" -}}
{{- $_ := required "image.repository is not set: push muster's image to a registry of your own and name it" .Values.image.repository -}}
{{- with .Values.image.digest -}}
{{- printf "%s@%s" (include "muster.repository" $) . -}}
{{- else -}}
{{- include "muster.taggedImage" $ -}}
{{- end -}}
{{- end -}}

{{/* The repository, in the registry that an umbrella chart names for all of its charts. */}}
{{- define "muster.repository" -}}
{{- $global := .Values.global | default dict -}}
{{- with $global.imageRegistry -}}{{- trimSuffix "/" . -}}/{{- end -}}
{{- .Values.image.repository -}}
{{- end -}}

{{/* The image by its tag, to push it: a push cannot choose the digest. */}}
{{- define "muster.taggedImage" -}}
{{- printf "%s:%s" (include "muster.repository" .) (include "muster.text" (.Values.image.tag | default .Chart.AppVersion)) -}}
{{- end -}}

{{/* A text that may be a number: of a file of values helm makes 2.0240101e+07 of 20240101. */}}
{{- define "muster.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}{{- int64 . -}}{{- else -}}{{- . -}}{{- end -}}
{{- end -}}

{{/* A value that may be off; unquoted, that is false in YAML. values.schema.json says what else it may be. */}}
{{- define "muster.orOff" -}}
{{- ternary "off" (toString .) (eq (toString .) "false") -}}
{{- end -}}

{{/* The kinds, labels and annotations of all templates. */}}
{{- define "muster.kinds" -}}
{{- .Files.Get "files/kinds.yaml" -}}
{{- end -}}

{{/* The workloads by API group. */}}
{{- define "muster.workloads" -}}
{{- (include "muster.kinds" . | fromYaml).workloads | toYaml -}}
{{- end -}}

{{/* The schema of amounts by resource, and of a duration. */}}
{{- define "muster.quantities" -}}
type: object
additionalProperties:
  anyOf: [{type: integer}, {type: string}]
  pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$
  x-kubernetes-int-or-string: true
{{- end -}}
{{- define "muster.duration" -}}
type: string
pattern: ^([0-9]+(h|m|s))+$
{{- end -}}

{{/* The API group and the plural of the queues that count. */}}
{{- define "muster.queueGroup" -}}
{{- ternary "muster.dev" "scheduling.volcano.sh" (eq .Values.queues.source "muster") -}}
{{- end -}}
{{- define "muster.queuePlural" -}}
{{- ternary "gangqueues" "queues" (eq .Values.queues.source "muster") -}}
{{- end -}}

{{/* The PodGroups of the chosen gang schedulers, by product. */}}
{{- define "muster.podGroups" -}}
{{- $known := (include "muster.kinds" . | fromYaml).schedulers -}}
{{- $chosen := dict -}}
{{- range .Values.schedulers -}}
{{- $product := splitList "=" . | first -}}
{{- $_ := set $chosen $product (get $known $product) -}}
{{- end -}}
{{- toYaml $chosen -}}
{{- end -}}

{{/* The API groups of these, as a list in YAML. */}}
{{- define "muster.podGroupApis" -}}
{{- $groups := list -}}
{{- range include "muster.podGroups" . | fromYaml -}}{{- $groups = append $groups .group -}}{{- end -}}
[{{ join ", " (sortAlpha $groups) }}]
{{- end -}}

{{/* The schedulerNames of the pods that Volcano makes PodGroups for; it does so also where others place the gangs. */}}
{{- define "muster.volcanoNames" -}}
{{- $usual := (include "muster.kinds" . | fromYaml).schedulers.volcano.name -}}
{{- $names := list -}}
{{- range .Values.schedulers -}}
{{- if eq (splitList "=" . | first) "volcano" -}}{{- $names = append $names (trimPrefix "volcano" . | trimPrefix "=" | default $usual) -}}{{- end -}}
{{- end -}}
{{- $names | default (list $usual) | toJson -}}
{{- end -}}

{{/* Names as a list in CEL. */}}
{{- define "muster.celList" -}}
['{{ . | join "', '" }}']
{{- end -}}

{{/* The name of a process's ServiceAccount; the argument is a dict of root and component. */}}
{{- define "muster.serviceAccount" -}}
{{- $account := (get .root.Values .component).serviceAccount -}}
{{- $account.name | default (printf "%s-%s" (include "muster.fullname" .root) .component) -}}
{{- end -}}

{{/* The controller's user name at the apiserver. */}}
{{- define "muster.controllerUser" -}}
{{- printf "system:serviceaccount:%s:%s" .Release.Namespace (include "muster.serviceAccount" (dict "root" . "component" "controller")) -}}
{{- end -}}

{{/* The webhook's user name at the apiserver. */}}
{{- define "muster.webhookUser" -}}
{{- printf "system:serviceaccount:%s:%s" .Release.Namespace (include "muster.serviceAccount" (dict "root" . "component" "webhook")) -}}
{{- end -}}

{{/*
Rights to see all workloads and what they are made from; the argument is a dict of root and further verbs for gangs, and
of the verbs that read, where not all of them are meant.
*/}}
{{- define "muster.readWorkloads" -}}
{{- $read := .read | default (list "get" "list" "watch") -}}
{{- $verbs := concat $read .verbs | join ", " -}}
{{- range $group, $known := include "muster.workloads" .root | fromYaml }}
- apiGroups: [{{ $group }}]
  resources: [{{ $known.gangs | join ", " }}]
  verbs: [{{ $verbs }}]
{{- with concat ($known.parents | default list) ($known.sources | default list) }}
- apiGroups: [{{ $group }}]
  resources: [{{ . | join ", " }}]
  verbs: [{{ join ", " $read }}]
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether a workload asks for gang scheduling itself, in CEL; a TrainJob and Volcano's Job do so in their spec. */}}
{{- define "muster.asks" -}}
[object.metadata.?labels.orValue({}), object.?spec.?labels.orValue({})].exists(labels, labels.exists(key, key in
{{ include "muster.celList" (include "muster.kinds" . | fromYaml).intentLabels }}))
|| [object.metadata.?annotations.orValue({}), object.?spec.?annotations.orValue({})].exists(annotations,
'scheduling.volcano.sh/queue-name' in annotations)
|| object.?spec.?runPolicy.?schedulingPolicy.hasValue()
|| object.?spec.?queue.hasValue()
{{- end -}}

{{/* The names of the namespaces in which nothing is muster's, as JSON. */}}
{{- define "muster.excludedNamespaces" -}}
{{- $names := list "kube-system" .Release.Namespace -}}
{{- range .Values.excludedNamespaces -}}{{- $names = append $names (include "muster.text" .) -}}{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* The namespaces to which webhooks and policies apply. */}}
{{- define "muster.namespaceSelector" -}}
{{- with .Values.namespaceSelector.matchLabels }}
matchLabels:
  {{- toYaml . | nindent 2 }}
{{- end }}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{- include "muster.excludedNamespaces" . | fromJsonArray | toYaml | nindent 6 }}
  {{- with .Values.namespaceSelector.matchExpressions }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The same in CEL, for policies that apply to muster itself in all namespaces. */}}
{{- define "muster.selectedInCel" -}}
{{- $parts := list -}}
{{- $excluded := include "muster.excludedNamespaces" . | fromJsonArray -}}
{{- $parts = append $parts (printf "!(request.namespace in %s)" (include "muster.celList" $excluded)) -}}
{{- $label := "namespaceObject.metadata.?labels[?'%s']" -}}
{{- range $key, $value := .Values.namespaceSelector.matchLabels -}}
{{- $parts = append $parts (printf (print $label " == optional.of('%s')") $key (toString $value)) -}}
{{- end -}}
{{- range .Values.namespaceSelector.matchExpressions -}}
{{- $is := printf (print $label ".hasValue()") .key -}}
{{- if has .operator (list "In" "NotIn") -}}
{{- $is = printf "%s && %s" $is (printf (print $label ".value() in %s") .key (include "muster.celList" .values)) -}}
{{- end -}}
{{- $parts = append $parts (printf (ternary "(%s)" "!(%s)" (has .operator (list "In" "Exists"))) $is) -}}
{{- end -}}
{{- $parts | join " && " -}}
{{- end -}}

{{/* The same for the controller, as kubectl's -l has it. What is not selected is left alone also where it is asked for. */}}
{{- define "muster.selectedNamespaces" -}}
{{- $excluded := include "muster.excludedNamespaces" . | fromJsonArray -}}
{{- $parts := list (printf "kubernetes.io/metadata.name notin (%s)" (join ", " $excluded)) -}}
{{- range $key, $value := .Values.namespaceSelector.matchLabels -}}
{{- $parts = append $parts (printf "%s=%s" $key (toString $value)) -}}
{{- end -}}
{{- range .Values.namespaceSelector.matchExpressions -}}
{{- if eq .operator "Exists" -}}{{- $parts = append $parts .key -}}
{{- else if eq .operator "DoesNotExist" -}}{{- $parts = append $parts (printf "!%s" .key) -}}
{{- else -}}{{- $parts = append $parts (printf "%s %s (%s)" .key (lower .operator) (.values | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- join "," $parts -}}
{{- end -}}

{{/* Whether something else provides the certificates: cert-manager, or an existing Secret. */}}
{{- define "muster.othersCertificates" -}}
{{- if and .Values.certManager.enabled .Values.webhook.existingSecret -}}
{{- fail "certManager.enabled and webhook.existingSecret exclude each other: set one of them" -}}
{{- end -}}
{{- if or .Values.certManager.enabled .Values.webhook.existingSecret -}}yes{{- end -}}
{{- end -}}

{{/* The Secret with the webhook's certificate. */}}
{{- define "muster.webhookSecret" -}}
{{- $name := printf "%s-webhook" (include "muster.fullname" .) -}}
{{- $own := ternary (printf "%s-cert" $name) (printf "%s-tls" $name) (.Values.certManager.enabled | default false) -}}
{{- .Values.webhook.existingSecret | default $own -}}
{{- end -}}

{{/* Asks cert-manager's cainjector to write the caBundles. */}}
{{- define "muster.injectedAuthority" -}}
{{- $own := dict -}}
{{- if .Values.certManager.enabled -}}
{{- $_ := set $own "cert-manager.io/inject-ca-from" (printf "%s/%s-webhook" .Release.Namespace (include "muster.fullname" .)) -}}
{{- end -}}
{{- with merge $own .Values.commonAnnotations -}}
annotations: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/*
Keeps the webhooks that fail closed from being called, in a first installation: until the webhook process takes it out,
when the apiserver reaches it. What is there is seen where helm asks a cluster; the output of `helm template` has none of it.
*/}}
{{- define "muster.closed" -}}
{{- if eq .Values.webhook.failurePolicy "Fail" -}}
{{- $found := lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" "" -}}
{{- $closed := hasKey $found "items" -}}
{{- range $found.items -}}
{{- if eq .metadata.name (include "muster.fullname" $) -}}
{{- $closed = false -}}
{{- range .webhooks -}}
{{- range .matchConditions -}}
{{- if eq .name "muster-has-been-reached" -}}{{- $closed = true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $closed }}
- name: muster-has-been-reached
  expression: "false"
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "muster.clientConfig" -}}
{{- with .Values.webhook.caBundle }}
{{- if not $.Values.webhook.existingSecret }}
{{- fail "webhook.caBundle is for a Secret of your own: set webhook.existingSecret too, or leave it empty" }}
{{- end }}
{{- if not (contains "-----BEGIN CERTIFICATE-----" .) }}
{{- fail "webhook.caBundle: use certificates in PEM, as they are; base64 is done here" }}
{{- end }}
caBundle: {{ b64enc . }}
{{ end -}}
service:
  namespace: {{ .Release.Namespace | quote }}
  name: {{ include "muster.fullname" . }}-webhook
  port: {{ .Values.webhook.service.port }}
  path: {{ .path }}
{{- end -}}

{{/* Annotations of objects that exist only while helm uninstalls; the argument is the hook's weight. */}}
{{- define "muster.beforeUninstall" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* The same for objects that exist only while `helm test` runs. */}}
{{- define "muster.duringTest" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
