import { countOf } from '../../../domain/text/count-of.js'
import { DENY_WITHHELD } from '../../../domain/ringfence/withhold-deny.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import type { RingfenceDone } from '../../../domain/ringfence/run-batch.js'
import type { RingfenceWritten } from '../../../domain/ringfence/write-ringfence.js'

/** What makes a ringfence another one than was asked for, gravest first. */
interface Graves {
  /** Fields of the rule set that are not as they must be. */
  changed: string[]
  denyWithheld: boolean
  /** Its own queries that reached the row limit. */
  truncated: string[]
  /** The deny rule names workloads because there is no Any list. */
  fallback: boolean
}

/** Names a sentence lists at most. */
const MOST_NAMED = 10

export function gravesOf(
  { denyWithheld, discovery, deny, options }: Prepared,
  written: RingfenceWritten | null,
): Graves {
  const { inbound, outbound } = discovery.reads
  return {
    changed: (written?.stored?.differences ?? []).map(({ field }) => field),
    denyWithheld,
    truncated: Object.entries({ inbound, outbound }).flatMap(([name, { truncated }]) => (truncated ? [name] : [])),
    fallback: deny !== null && deny.mode !== (options.deny_consumer ?? 'any'),
  }
}

/** Of one ringfence, to be said before anything else. Who the fallback lets in is told by the plan. */
export function warnGravely({ changed, denyWithheld }: Graves): string[] {
  return [
    changed.length > 0
      ? `The rule set is not as it must be (${changed.join(', ')}), so its rules may concern more than this application. Look at it before it is provisioned.`
      : '',
    denyWithheld ? `The deny rule was left out: ${DENY_WITHHELD}` : '',
  ].filter(Boolean)
}

/** What of that belongs into the message, after its first sentence. */
export const describeGraves = ({ changed, denyWithheld, fallback }: Graves): string =>
  [
    changed.length > 0 ? ' The rule set is not as it must be: see warnings.' : '',
    denyWithheld ? ' The deny rule is withheld: the inbound traffic was not read in full.' : '',
    fallback ? ' There is no Any IP list, so the deny rule is for workloads only.' : '',
  ].join('')

/** The same of a whole batch, once for all that it concerns: their own warnings may be cut. */
export function warnOfBatch(done: readonly RingfenceDone[]): string[] {
  const all = done.map(({ prepared, written }) => {
    const [app, env] = prepared.application
    return { name: `${app.value} (${env.value})`, graves: gravesOf(prepared, written) }
  })
  const say = (text: string, is: (graves: Graves) => boolean) => {
    const names = all.flatMap(({ name, graves }) => (is(graves) ? [name] : []))
    return names.length === 0 ? [] : [`${text} (${countOf(names.length, 'application')}): ${named(names)}.`]
  }
  return [
    ...say('The rule set is not as it must be', ({ changed }) => changed.length > 0),
    ...say('The deny rule was left out, call again with a shorter lookback_days', (one) => one.denyWithheld),
    ...say('The row limit was reached, so sources that were not read get no rule', ({ truncated }) =>
      truncated.includes('inbound'),
    ),
    ...say('There is no Any IP list, so the deny rule is for workloads only', ({ fallback }) => fallback),
  ]
}

/** The first of them, and how many more there are. */
export function named(names: readonly string[]): string {
  const rest = names.length - MOST_NAMED
  return `${names.slice(0, MOST_NAMED).join('; ')}${rest > 0 ? ` and ${rest} more` : ''}`
}
