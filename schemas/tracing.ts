type Facts = Readonly<Record<string, string | number>>

/** Where a message says that it comes from. */
export interface TraceOrigin {
  traceparent: string
  tracestate?: string
}

/** A span that is under way. */
export interface OpenSpan {
  /** It ends in an error with this code. */
  readonly fail: (code: string) => void
}

/** A request whose answer is awaited. */
export interface SentRequest {
  /** What hands the trace on to the other end. */
  readonly headers: Readonly<Record<string, string>>
  readonly end: (status: number | undefined, failure: string | undefined) => void
}

/** A request that is being answered. */
export interface ServedRequest {
  /** Runs a part of its work in its trace. */
  readonly run: <T>(work: () => T) => T
  readonly end: (status: number) => void
}

/**
 * Where the rooms leave spans, without seeing who collects them; they are given none where tracing is off. Names and facts are of fixed
 * sets: no arguments, no people, no hosts.
 */
export interface Tracing {
  /**
   * Runs `work` in a span of its own, which ends with it, in an error where it rejects. `from`: the trace that it belongs to where that is not
   * the one of what runs now, which it is then linked with (W3C Trace Context; what cannot be read is as good as none).
   */
  readonly span: <T>(name: string, facts: Facts, work: (span: OpenSpan) => Promise<T>, from?: TraceOrigin) => Promise<T>
  /** A request to a PCE, as part of what runs now. */
  readonly send: (method: string, operation: string) => SentRequest
  /** A request of a client, as part of the trace that its headers name (W3C Trace Context). `route`: undefined for none of ours. */
  readonly serve: (
    headers: Readonly<Record<string, string | string[] | undefined>>,
    method: string,
    route: string | undefined,
  ) => ServedRequest
  /** Sends what has not been sent; waits for it no longer than a moment. Never rejects. */
  readonly close: () => Promise<void>
}

/** Runs a stage of the pipeline, in a span where there is tracing. */
export function inStage<T>(tracing: Tracing | undefined, stage: string, work: () => Promise<T>): Promise<T>
/** The same for a stage that may be over at once: without tracing it is then. */
export function inStage<T>(tracing: Tracing | undefined, stage: string, work: () => T | Promise<T>): T | Promise<T>
export function inStage<T>(tracing: Tracing | undefined, stage: string, work: () => T | Promise<T>): T | Promise<T> {
  return tracing === undefined ? work() : tracing.span(stage, {}, async () => work())
}
