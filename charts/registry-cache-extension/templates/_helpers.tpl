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

{{- /* The seed's setting, if vpa.enabled is not set. */ -}}
{{- define "vpaEnabled" -}}
{{- if kindIs "bool" .Values.vpa.enabled -}}
{{ .Values.vpa.enabled }}
{{- else -}}
{{ (((((.Values.gardener).seed).spec).settings).verticalPodAutoscaler).enabled | default false }}
{{- end -}}
{{- end -}}
