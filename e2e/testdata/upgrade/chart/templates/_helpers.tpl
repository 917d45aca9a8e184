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
{{ .Values.image.repository }}:{{ required "image.tag or image.ref is required" .Values.image.tag }}
{{- end -}}
{{- end -}}
