{{- define "name" -}}
gardener-extension-registry-cache-admission
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

{{/* gardener-operator installs the chart in the namespace garden, whose Secrets are the keys of the garden. A webhook that is
registered by its Service, and not by a URL, must have them in the namespace of the Service. */}}
{{- define "certificatesNamespace" -}}
{{- if .Values.gardener.virtualCluster.enabled -}}
{{ include "name" . }}
{{- else -}}
{{ .Release.Namespace }}
{{- end -}}
{{- end -}}

{{- define "vpaEnabled" -}}
{{- if kindIs "bool" .Values.vpa.enabled -}}
{{ .Values.vpa.enabled }}
{{- else -}}
{{ or (.Capabilities.APIVersions.Has "autoscaling.k8s.io/v1/VerticalPodAutoscaler") .Values.gardener.virtualCluster.enabled }}
{{- end -}}
{{- end -}}
