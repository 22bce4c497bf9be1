{{/* Refuses values that fit the schema, and not each other. */}}
{{- define "muster.check" -}}
{{- $name := include "muster.fullname" . -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) -}}
{{- fail (printf "a Service cannot have the name %s-webhook: it begins with a letter, and has no dots; set fullnameOverride, or choose another name for the release" $name) -}}
{{- end -}}
{{- with .Values.controller.lease -}}
{{- if not (and (gt (float64 .durationSeconds) (float64 .renewDeadlineSeconds)) (gt (float64 .renewDeadlineSeconds) (float64 .retryPeriodSeconds))) -}}
{{- fail (printf "controller.lease: durationSeconds (%v) must be above renewDeadlineSeconds (%v), and that above retryPeriodSeconds (%v)" .durationSeconds .renewDeadlineSeconds .retryPeriodSeconds) -}}
{{- end -}}
{{- end -}}
{{- $usual := (include "muster.kinds" . | fromYaml).schedulers -}}
{{- $called := dict -}}
{{- range $entry := .Values.schedulers -}}
{{- $product := splitList "=" $entry | first -}}
{{- $scheduler := trimPrefix $product $entry | trimPrefix "=" | default (get $usual $product).name -}}
{{- with get $called $scheduler -}}
{{- fail (printf "schedulers: %s and %s are both called %s, and pods name their scheduler by that alone; leave one out, or give one the schedulerName that its pods have (%s=NAME)" . $entry $scheduler $product) -}}
{{- end -}}
{{- $_ := set $called $scheduler $entry -}}
{{- end -}}
{{- if and (eq .Values.queues.source "muster") (has "volcano" (include "muster.podGroups" . | fromYaml | keys)) -}}
{{- fail "queues.source is muster, and Volcano is among schedulers: Volcano places gangs by its own Queues alone; set queues.source=volcano, or take volcano out of schedulers" -}}
{{- end -}}
{{- if and .Values.elasticQuotas (not (has "coscheduling" (include "muster.podGroups" . | fromYaml | keys))) -}}
{{- fail "elasticQuotas is true, and coscheduling is not among schedulers: no other scheduler enforces ElasticQuotas; set elasticQuotas=false, or add coscheduling to schedulers" -}}
{{- end -}}
{{- if and (eq (int .Values.webhook.replicas) 0) (eq .Values.webhook.failurePolicy "Fail") -}}
{{- fail "webhook.replicas is 0 and webhook.failurePolicy is Fail: no pod of a gang could be created; set webhook.failurePolicy=Ignore, or run a replica" -}}
{{- end -}}
{{- if and .Values.page.enabled (not .Values.page.existingSecret) (not (and .Values.networkPolicy.enabled .Values.networkPolicy.reviewsFrom)) -}}
{{- fail "page.enabled is true, and every pod of the cluster could read the page: set page.existingSecret, or, where NetworkPolicies are enforced, networkPolicy.enabled and networkPolicy.reviewsFrom" -}}
{{- end -}}
{{- if eq (int .Values.controller.replicas) 0 -}}
{{- fail "controller.replicas is 0: no gang would ever start; run a replica, or two" -}}
{{- end -}}
{{- $created := dict -}}
{{- range $component := ternary (list "webhook" "controller" "page") (list "webhook" "controller") .Values.page.enabled -}}
{{- $values := get $.Values $component -}}
{{- if and (not $values.serviceAccount.create) (not $values.serviceAccount.name) -}}
{{- fail (printf "%s.serviceAccount.create is false, and %s.serviceAccount.name is empty: name the ServiceAccount that is there, or let the chart create one" $component $component) -}}
{{- end -}}
{{- if $values.serviceAccount.create -}}
{{- $account := include "muster.serviceAccount" (dict "root" $ "component" $component) -}}
{{- with get $created $account -}}
{{- fail (printf "%s.serviceAccount and %s.serviceAccount are both %s, and each would create it: choose two names, or set create=false for one of them" . $component $account) -}}
{{- end -}}
{{- $_ := set $created $account $component -}}
{{- end -}}
{{- $serving := $values.ports.reviews | default $values.ports.page -}}
{{- if and $serving (eq (int $serving) (int $values.ports.health)) -}}
{{- fail (printf "%s.ports: %s and health are both %d: choose two ports" $component (ternary "reviews" "page" (hasKey $values.ports "reviews")) (int $serving)) -}}
{{- end -}}
{{- with $values.podDisruptionBudget -}}
{{- if and .enabled (has (toString .maxUnavailable) (list "0" "0%")) -}}
{{- fail (printf "%s.podDisruptionBudget.maxUnavailable is %v: no drain of a node would end; allow one replica to be evicted, or set enabled=false" $component .maxUnavailable) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.webhook.hostNetwork .Values.controller.hostNetwork -}}
{{- $port := int .Values.controller.ports.health -}}
{{- range $name, $other := .Values.webhook.ports -}}
{{- if eq (int $other) $port -}}
{{- fail (printf "webhook.ports.%s and controller.ports.health are both %d, and both run on the nodes' network: no node could run both; choose two ports, or set hostNetwork=false for one of them" $name $port) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.certManager -}}
{{- if and .enabled (le (include "muster.seconds" .duration | float64) (include "muster.seconds" .renewBefore | float64)) -}}
{{- fail (printf "certManager: renewBefore (%s) must be below duration (%s)" .renewBefore .duration) -}}
{{- end -}}
{{- /* cert-manager renews an authority at two thirds of its time, and injects it with the webhook's next certificate. */ -}}
{{- $most := div (include "muster.authorityHours" .) 3 -}}
{{- $used := subf (include "muster.seconds" .duration | float64) (include "muster.seconds" .renewBefore | float64) -}}
{{- if and .enabled (not .issuerRef) (gt $used (mulf $most 3600)) -}}
{{- fail (printf "certManager: duration (%s) less renewBefore (%s) must be at most %dh without issuerRef, or the CA certificate in the caBundles could end before cert-manager writes the next one, and every call would fail; set a shorter duration, a longer renewBefore, or an issuerRef" .duration .renewBefore $most) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled .Values.serviceMonitor.enabled -}}
{{- fail "podMonitor.enabled and serviceMonitor.enabled are both true: every series would be there twice; enable the one that your Prometheus selects" -}}
{{- end -}}
{{- end -}}

{{/* The hours for which the authority is valid that cert-manager makes for muster alone. */}}
{{- define "muster.authorityHours" -}}17520{{- end -}}

{{/* The seconds of a duration such as 1h30m, 1.5h or 500ms. */}}
{{- define "muster.seconds" -}}
{{- $units := dict "h" 3600 "m" 60 "s" 1 "ms" 0.001 -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|h|m|s)" . -1 -}}
{{- $seconds = addf $seconds (mulf (regexFind "[0-9.]+" . | float64) (get $units (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}
