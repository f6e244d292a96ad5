{{- define "cairn.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "cairn.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cairn.labels" -}}
{{ include "cairn.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "cairn.secret" -}}
{{- default (printf "%s-secrets" (include "cairn.fullname" .)) .Values.secrets.existingSecret -}}
{{- end -}}

{{/* The names of the console: those of the values, and the host of its Ingress. */}}
{{- define "cairn.consoleHosts" -}}
{{- $hosts := .Values.console.hosts -}}
{{- with .Values.ingress.console -}}
{{- if .enabled -}}
{{- $hosts = append $hosts (ternary (printf "https://%s" .host) .host (ne .tlsSecret "")) -}}
{{- end -}}
{{- end -}}
{{- join "," $hosts -}}
{{- end -}}
