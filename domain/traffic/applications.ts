import type { Label } from '../../schemas/pce/label.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { endColumns, type Column, type Side } from './columns.js'
import type { FlowEncoder } from './encode-flow.js'
import { endpointLabel, type FlowEnd } from './flow-ends.js'

/** An application: the value of an app label together with the value of an env label (T11). */
export interface Application {
  app: string
  env: string
}

/** The message of an analysis that found no flows whose policy decision is known. */
export const NO_DECIDED_FLOWS =
  'No flows with a policy decision in the window; flows with decision unknown are not queried.'

/**
 * Returns the application of one end of a connection, or null if the end does not have both an app and an env label.
 */
export function applicationOf({ labels }: FlowEnd): Application | null {
  const { app, env } = labels
  return app === undefined || env === undefined ? null : { app, env }
}

/**
 * Returns the application of a source or destination as `app (env)`. Without an application, returns the result of
 * `endpointLabel`, so that two hosts without labels stay distinct.
 */
export function nameEnd(end: FlowEnd): string {
  const application = applicationOf(end)
  return application === null ? endpointLabel(end) : applicationName(application)
}

/** Names source and destination by their applications, or by their hosts if both belong to the same application. */
export function nameEnds(ends: { source: FlowEnd; destination: FlowEnd }): [source: string, destination: string] {
  const names: [string, string] = [nameEnd(ends.source), nameEnd(ends.destination)]
  return names[0] === names[1] ? [endpointLabel(ends.source), endpointLabel(ends.destination)] : names
}

/** Formats an application as `app (env)`, for sentences and for fields that may contain a host instead. */
export const applicationName = ({ app, env }: Application): string => `${app} (${env})`

/** Builds an application from its app and env labels, in this order. */
export function applicationOfLabels([app, env]: readonly Label[]): Application {
  return { app: app?.value ?? '', env: env?.value ?? '' }
}

/**
 * Formats an application as `app|env`, for fields that contain only applications. Use it only for display and sorting,
 * because a label value may itself contain `|`.
 */
export const applicationKey = ({ app, env }: Application): string => `${app}|${env}`

/** A separator that cannot occur in a label value. */
const SEPARATOR = '\u0000'

/**
 * Returns a string that identifies an application: two applications have the same one only if both labels are equal.
 */
export const applicationId = ({ app, env }: Application): string => `${app}${SEPARATOR}${env}`

/**
 * Returns two columns, with the ids of the applications of source and destination. Code 0 (null) means no application.
 * Both columns use the same codes, so the source's and the destination's application can be compared by code.
 */
export function applicationIds(encoder: FlowEncoder): Record<Side, Column<string | null>> {
  return endColumns(encoder, (end) => {
    const application = applicationOf(end)
    return application === null ? null : applicationId(application)
  })
}

/** Returns two columns like those of `applicationIds`, but with applications instead of ids as values. */
export function applicationColumns(encoder: FlowEncoder): Record<Side, Column<Application | null>> {
  const ids = applicationIds(encoder)
  const split = ({ code, value }: Column<string | null>): Column<Application | null> => ({
    code,
    value(number) {
      const [app, env] = value(number)?.split(SEPARATOR) ?? []
      return app === undefined || env === undefined ? null : { app, env }
    },
  })
  return { src: split(ids.src), dst: split(ids.dst) }
}

/**
 * Returns a filter for one side of a traffic query. It selects every source (or destination) that has all of the given
 * labels.
 */
export const withLabels = (labels: readonly Label[]): TrafficQuery['sources'] => ({
  include: [labels.map(({ href }) => ({ label: { href } }))],
  exclude: [],
})

/** Returns a filter that leaves one side of a traffic query unrestricted. */
export const anything = (): TrafficQuery['sources'] => ({ include: [[]], exclude: [] })
