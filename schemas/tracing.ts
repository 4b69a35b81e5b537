type Facts = Readonly<Record<string, string | number>>

/** The trace to which a message belongs, according to its sender. */
export interface TraceOrigin {
  traceparent: string
  tracestate?: string
}

/** A span of a trace that has not ended yet. */
export interface OpenSpan {
  /** Marks the span as failed with this error code. */
  readonly fail: (code: string) => void
}

/** An outgoing request that has not been answered yet. */
export interface SentRequest {
  /** Headers that pass the trace on to the receiver of the request. */
  readonly headers: Readonly<Record<string, string>>
  readonly end: (status: number | undefined, failure: string | undefined) => void
}

/** A request that this server is answering. */
export interface ServedRequest {
  /** Runs a part of the work as part of the request's trace. */
  readonly run: <T>(work: () => T) => T
  readonly end: (status: number) => void
}

/**
 * The interface through which parts of the server create spans without knowing where these are sent. Without tracing,
 * this object does not exist. Names and attributes come from fixed sets and contain no arguments, people or hosts.
 */
export interface Tracing {
  /**
   * Runs `work` in its own span, which ends when the work ends. If the work rejects, the span is marked as failed. The
   * span belongs to the current trace. If `from` is given, it belongs to the trace that `from` names (W3C Trace
   * Context) and is linked to the current span. An unreadable `from` is ignored.
   */
  readonly span: <T>(name: string, facts: Facts, work: (span: OpenSpan) => Promise<T>, from?: TraceOrigin) => Promise<T>
  /** Opens a span for a request to a PCE, as part of the current trace. */
  readonly send: (method: string, operation: string) => SentRequest
  /**
   * Opens a span for a client's request, as part of the trace in its headers (W3C Trace Context). `route` is undefined
   * if the path is not one of this server's routes.
   */
  readonly serve: (
    headers: Readonly<Record<string, string | string[] | undefined>>,
    method: string,
    route: string | undefined,
  ) => ServedRequest
  /** Sends the remaining spans, but does not wait long for this. Never rejects. */
  readonly close: () => Promise<void>
}

/** Runs a stage of a call's processing, in a span of its own if tracing is on. */
export function inStage<T>(tracing: Tracing | undefined, stage: string, work: () => Promise<T>): Promise<T>
/** Runs a stage that may be synchronous. Without tracing, a synchronous stage returns its result synchronously. */
export function inStage<T>(tracing: Tracing | undefined, stage: string, work: () => T | Promise<T>): T | Promise<T>
export function inStage<T>(tracing: Tracing | undefined, stage: string, work: () => T | Promise<T>): T | Promise<T> {
  return tracing === undefined ? work() : tracing.span(stage, {}, async () => work())
}
