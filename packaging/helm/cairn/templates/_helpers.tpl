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

{{/* The text of a setting, from its name and its value. A variable that the chart sets is refused, in both of its spellings. */}}
{{- define "cairn.setting" -}}
{{- $name := index . 0 -}}
{{- $secret := "secrets.existingSecret" -}}
{{- $own := dict
  "DATA_DIR" "persistence"
  "API_BIND" "service.management.port"
  "CONSOLE_BIND" "service.management.consolePort"
  "CONSOLE_ENABLED" "console.enabled"
  "CONSOLE_HOSTS" "console.hosts"
  "MEMORY_LIMIT" "memoryLimit"
  "EXECUTORS" "executors"
  "TLS_CERTIFICATE" "tls.existingSecret"
  "TLS_KEY" "tls.existingSecret"
  "TLS_API_ENABLED" "tls.existingSecret"
  "CREDENTIAL_MASTER_KEY" $secret
  "ROOT_ACCESS_KEY" $secret
  "ROOT_SECRET_KEY" $secret
  "MANAGEMENT_SYSTEM_TOKEN" $secret
  "METRICS_SCRAPE_TOKEN" $secret
-}}
{{- $key := regexReplaceAll "^SERVICE_((SERVER|AUTH|OBSERVABILITY)_)?" $name "" | trimSuffix "_FILE" -}}
{{- with get $own $key -}}
{{- fail (printf "settings.%s: the chart sets this variable itself. Remove it from settings, and use the value %s" $name .) -}}
{{- end -}}
{{- $value := index . 1 -}}
{{- /* Helm reads the whole numbers of a file as 1e+06 from a million on. */ -}}
{{- ternary (toJson $value) $value (kindIs "float64" $value) | quote -}}
{{- end -}}
