{{- define "name" -}}
gardener-extension-registry-cache
{{- end -}}

{{- define "labels" -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "image" -}}
{{- if .Values.image.ref -}}
{{ .Values.image.ref }}
{{- else -}}
{{- $tag := required "image.tag or image.ref is required" .Values.image.tag -}}
{{ .Values.image.repository }}{{ hasPrefix "sha256:" $tag | ternary "@" ":" }}{{ $tag }}
{{- end -}}
{{- end -}}

{{- /* The ports of the pod. gardenadm passes free ports: on the first node of a self-hosted shoot, the pod shares the node's
network, where kubelet has port 10250. */ -}}
{{- define "metricsPort" -}}
{{- with .Values.usablePorts }}{{ index . 0 }}{{ else }}{{ .Values.metrics.port }}{{ end -}}
{{- end -}}

{{- define "webhookPort" -}}
{{- with .Values.usablePorts }}{{ index . 1 }}{{ else }}{{ .Values.webhookConfig.serverPort }}{{ end -}}
{{- end -}}

{{- define "healthPort" -}}
{{- with .Values.usablePorts }}{{ index . 2 }}{{ else }}{{ .Values.healthPort }}{{ end -}}
{{- end -}}

{{- /* The seed's setting, if vpa.enabled is not set. */ -}}
{{- define "vpaEnabled" -}}
{{- if kindIs "bool" .Values.vpa.enabled -}}
{{ .Values.vpa.enabled }}
{{- else -}}
{{ (((((.Values.gardener).seed).spec).settings).verticalPodAutoscaler).enabled | default false }}
{{- end -}}
{{- end -}}
