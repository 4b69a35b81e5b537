import {
  type Context,
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { ToolError } from '../../schemas/errors.js'
import type { TraceOrigin, Tracing } from '../../schemas/tracing.js'

export interface TracingOptions {
  name: string
  version: string
  /** The id of this process in its traces (`service.instance.id`). */
  replica: string
  log: { warn(facts: object, message: string): void }
  /** Maximum time, in milliseconds, for which `close` waits until the last spans are sent. */
  patienceMs: number
}

/**
 * Minimum interval between two warnings, in milliseconds. Without it, an unreachable collector would be reported with
 * every export.
 */
const TOLD_EVERY_MS = 60_000
const LONGEST_TOLD = 500

type Headers = Parameters<Tracing['serve']>[0]

/**
 * Starts tracing. Spans are sent to the destination in OpenTelemetry's standard variables (OTEL_EXPORTER_OTLP_ENDPOINT
 * and others), which its libraries themselves read from the environment. Nothing is registered globally, except for a
 * logger for these libraries.
 */
export function startTracing({ name, version, replica, log, patienceMs }: TracingOptions): Tracing {
  tellTroubles(log)
  const own = { 'service.name': name, 'service.version': version, 'service.instance.id': replica }
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes(own).merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  })
  const tracer = provider.getTracer(name, version)
  const contexts = new AsyncLocalStorageContextManager().enable()
  const propagator = new W3CTraceContextPropagator()
  const within = <T>(context: Context, span: Span, work: () => T): T =>
    contexts.with(trace.setSpan(context, span), work)

  /** Returns the trace that a message names, or the current trace if it names none. */
  function originOf(from: TraceOrigin, around: Context): Context {
    const context = propagator.extract(ROOT_CONTEXT, from, {
      get: (carrier: TraceOrigin, key) => carrier[key as keyof TraceOrigin],
      keys: (carrier: TraceOrigin) => Object.keys(carrier),
    })
    return trace.getSpanContext(context) === undefined ? around : context
  }

  return {
    span(spanName, facts, work, from) {
      const around = contexts.active()
      const parent = from === undefined ? around : originOf(from, around)
      const ambient = parent === around ? undefined : trace.getSpanContext(around)
      const links = ambient === undefined ? {} : { links: [{ context: ambient }] }
      const span = tracer.startSpan(spanName, { attributes: facts, ...links }, parent)
      const fail = (code: string) => void fails(span, code)
      return within(parent, span, async () => {
        try {
          return await work({ fail })
        } catch (error) {
          fail(codeOf(error))
          throw error
        } finally {
          span.end()
        }
      })
    },
    send(method, operation) {
      const parent = contexts.active()
      const template = operation.replace(/^\w+ /, '')
      const attributes = { 'http.request.method': method, 'url.template': template }
      const span = tracer.startSpan(operation, { kind: SpanKind.CLIENT, attributes }, parent)
      const headers: Record<string, string> = {}
      propagator.inject(trace.setSpan(parent, span), headers, {
        set: (carrier: typeof headers, key, value) => void (carrier[key] = value),
      })
      return {
        headers,
        end(status, failure) {
          if (status !== undefined) span.setAttribute('http.response.status_code', status)
          if (failure !== undefined) fails(span, failure)
          span.end()
        },
      }
    },
    serve(headers, method, route) {
      const sender = propagator.extract(ROOT_CONTEXT, headers, {
        get: (carrier: Headers, key) => carrier[key],
        keys: (carrier: Headers) => Object.keys(carrier),
      })
      const attributes = { 'http.request.method': method, ...(route !== undefined && { 'http.route': route }) }
      const spanName = route === undefined ? method : `${method} ${route}`
      const span = tracer.startSpan(spanName, { kind: SpanKind.SERVER, attributes }, sender)
      return {
        run: (work) => within(sender, span, work),
        end(status) {
          span.setAttribute('http.response.status_code', status)
          if (status >= 500) fails(span, String(status))
          span.end()
        },
      }
    },
    async close() {
      let timer: NodeJS.Timeout | undefined
      const patience = new Promise<void>((resolve) => (timer = setTimeout(resolve, patienceMs)))
      await Promise.race([provider.shutdown().catch(() => undefined), patience])
      clearTimeout(timer)
      contexts.disable()
    },
  }
}

const fails = (span: Span, code: string) =>
  span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', code)

/** Returns the code of an error. The message is never returned, because it may contain more than a trace should. */
function codeOf(error: unknown): string {
  if (error instanceof ToolError) return error.code
  const { thrown } = error as { thrown?: unknown }
  return thrown === undefined ? 'internal' : codeOf(thrown)
}

function tellTroubles(log: TracingOptions['log']): void {
  let toldAt = -Infinity
  const tell = (text: string) => {
    const now = performance.now()
    if (now - toldAt < TOLD_EVERY_MS) return
    toldAt = now
    log.warn({ trouble: text.slice(0, LONGEST_TOLD) }, 'traces cannot be exported as they should')
  }
  const silent = () => undefined
  const logger = { error: tell, warn: tell, info: silent, debug: silent, verbose: silent }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
}
