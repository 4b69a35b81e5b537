{{- define "svc-mcp.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "svc-mcp.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "svc-mcp.labels" -}}
{{ include "svc-mcp.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "svc-mcp.metadata" -}}
name: {{ include "svc-mcp.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "svc-mcp.labels" . | nindent 2 }}
{{- end -}}

{{- define "svc-mcp.secretName" -}}
{{- if .Values.secrets.externalSecret.enabled -}}
{{- include "svc-mcp.fullname" . -}}
{{- else -}}
{{- required "secrets.existingSecret: name the Secret with MCP_KEK and the rest, or enable secrets.externalSecret" .Values.secrets.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "svc-mcp.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "svc-mcp.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- /* A reference that always means the same image: a tag can be moved. */ -}}
{{- define "svc-mcp.image" -}}
{{- $digest := required (printf "%s.digest: pin the image by its digest, sha256:…; a tag can be moved" .name) .image.digest -}}
{{- if not (regexMatch "^sha256:[0-9a-f]{64}$" $digest) -}}
{{- fail (printf "%s.digest: '%s' is not sha256: and 64 hexadecimal digits" .name $digest) -}}
{{- end -}}
{{- printf "%s@%s" (required (printf "%s.repository: where the image is" .name) .image.repository) $digest -}}
{{- end -}}

{{- /* What contradicts itself, before anything is rendered. */ -}}
{{- define "svc-mcp.check" -}}
{{- range list "MCP_PUBLIC_URL" "MCP_OAUTH_ISSUER" "MCP_OAUTH_JWKS_URL" "MCP_OAUTH_AUDIENCE" -}}
{{- $_ := required (printf "config.%s: an authenticated server needs it" .) (get $.Values.config .) -}}
{{- end -}}
{{- range list "MCP_KEK" "MCP_KEK_PREVIOUS" "MCP_CONFIRM_HMAC_KEY" "MCP_CONFIRM_HMAC_KEY_PREVIOUS" "MCP_STATE_URL" "MCP_NOTIFY_WEBHOOK_URL" "MCP_NOTIFY_SECRET" "MCP_OAUTH_CLIENT_SECRET" "API_KEY" "API_SECRET" "PCE_PROXY_URL" -}}
{{- if hasKey $.Values.config . -}}
{{- fail (printf "config.%s: a ConfigMap is no place for a secret; put it into the Secret and its name into secrets.names" .) -}}
{{- end -}}
{{- end -}}
{{- range list "MCP_TRUSTED_PROXIES" "MCP_METRICS_PORT" "MCP_REPLICA_ID" "MCP_KEYSTORE_PATH" "MCP_STATE_PATH" -}}
{{- if hasKey $.Values.config . -}}
{{- fail (printf "config.%s: the chart sets it" .) -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.config "MCP_DEV_INSECURE" -}}
{{- fail "config.MCP_DEV_INSECURE: this chart runs authenticated servers only" -}}
{{- end -}}
{{- range list "MCP_NOTIFY_WEBHOOK_URL" "MCP_NOTIFY_SECRET" -}}
{{- $isNamed := has . $.Values.secrets.names -}}
{{- if $.Values.notifications.enabled -}}
{{- if and $isNamed $.Values.notifications.existingSecret -}}
{{- fail (printf "notifications.existingSecret has %s, and so has secrets.names: name it in one of them" .) -}}
{{- end -}}
{{- if not (or $isNamed $.Values.notifications.existingSecret (and $.Values.notifications.url (eq . "MCP_NOTIFY_WEBHOOK_URL"))) -}}
{{- fail (printf "notifications.existingSecret: name the Secret with %s, or put it into secrets.names" .) -}}
{{- end -}}
{{- else if $isNamed -}}
{{- fail (printf "secrets.names has %s, which needs notifications.enabled" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.notifications.url (has "MCP_NOTIFY_WEBHOOK_URL" .Values.secrets.names) -}}
{{- fail "notifications.url, and secrets.names has MCP_NOTIFY_WEBHOOK_URL: the URL is in one of them" -}}
{{- end -}}
{{- if hasKey .Values.config "MCP_NOTIFY_NAMES" -}}
{{- fail "config.MCP_NOTIFY_NAMES: notifications.names sets it" -}}
{{- end -}}
{{- if eq .Values.state.kind "file" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) -}}
{{- fail "state.kind: file means one replica (replicaCount: 1, no autoscaling); several need postgresql" -}}
{{- end -}}
{{- if has "MCP_STATE_URL" .Values.secrets.names -}}
{{- fail "state.kind: file, but secrets.names has MCP_STATE_URL" -}}
{{- end -}}
{{- else if not (has "MCP_STATE_URL" .Values.secrets.names) -}}
{{- fail "state.kind: postgresql needs MCP_STATE_URL in secrets.names" -}}
{{- end -}}
{{- end -}}

{{- /* The variables that the server reads from the Secret of notifications, with commas between them. */ -}}
{{- define "svc-mcp.notifySecrets" -}}
{{- if not .Values.notifications.url }}MCP_NOTIFY_WEBHOOK_URL,{{ end }}MCP_NOTIFY_SECRET
{{- end -}}

{{- /* Ports of a NetworkPolicy, from a list of numbers. */ -}}
{{- define "svc-mcp.ports" -}}
{{- range . }}
- protocol: TCP
  port: {{ . }}
{{- end }}
{{- end -}}

{{- /* A list that has something in it: to a NetworkPolicy an empty one means everybody. */ -}}
{{- define "svc-mcp.list" -}}
{{- if not .value -}}
{{- fail .message -}}
{{- end -}}
{{- toYaml .value -}}
{{- end -}}
