import type { Label } from '../../schemas/pce/label.js'
import type { PolicyDecision, TrafficQuery } from '../../schemas/pce/traffic.js'
import { endColumns, type Column, type Side } from './columns.js'
import type { FlowEncoder } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'

/** An application: an app label's value together with an env label's (T11). */
export interface Application {
  app: string
  env: string
}

/** What the analysis tools ask for: all decisions but `unknown`. */
export const KNOWN_DECISIONS: readonly PolicyDecision[] = ['allowed', 'potentially_blocked', 'blocked']

/** What an answer to such a question says when there is nothing. */
export const NO_DECIDED_FLOWS =
  'No flows in the window that policy decided on; those it did not (unknown) are not asked for.'

/** The application of an end; null unless it has both labels. */
export function applicationOf({ labels }: FlowEnd): Application | null {
  const { app, env } = labels
  return app === undefined || env === undefined ? null : { app, env }
}

/** The application that its app and its env label, in this order, make. */
export function applicationOfLabels([app, env]: readonly Label[]): Application {
  return { app: app?.value ?? '', env: env?.value ?? '' }
}

/** How answers write an application in one word: `app|env`. For display and order only: a value may hold a `|` itself. */
export const applicationKey = ({ app, env }: Application): string => `${app}|${env}`

/** No label value holds this. */
const SEPARATOR = '\u0000'

/** An application as one text that no other has. */
export const applicationId = ({ app, env }: Application): string => `${app}${SEPARATOR}${env}`

/** The ids of the applications of both ends of a row. Code 0 (null): no application. Both sides share their codes. */
export function applicationIds(encoder: FlowEncoder): Record<Side, Column<string | null>> {
  return endColumns(encoder, (end) => {
    const application = applicationOf(end)
    return application === null ? null : applicationId(application)
  })
}

/** The applications of both ends of a row, as `applicationIds` has them. */
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

/** The side of a query that stands for everything with all of these labels. */
export const withLabels = (labels: readonly Label[]): TrafficQuery['sources'] => ({
  include: [labels.map(({ href }) => ({ label: { href } }))],
  exclude: [],
})

/** The side of a query that stands for anything. */
export const anything = (): TrafficQuery['sources'] => ({ include: [[]], exclude: [] })
