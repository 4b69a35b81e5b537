import { showAssumed } from '../../schemas/assumes.js'
import {
  OBSERVED_DAYS,
  type CutEffect,
  type Observed,
  type ObservedChange,
  type ObservedPair,
} from '../../domain/drafts/observe-change.js'
import { CUT_FATES } from '../../domain/policy/judge-cut.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { clipText, quote } from '../../domain/text/escape-text.js'
import { coverageNote, dataSpan } from '../../domain/traffic/read-flows.js'
import { LONGEST_NAME } from './explain-changes.js'

const MOST_PAIRS = 10
const REST = `largest has ${MOST_PAIRS} of pairs_total; for the others, dry-run a narrower change, or write it to the draft and call review-draft with its href.`
const MOST_PORTS = 5
/** Maximum number of pairs of source and destination named in the sentence about the traffic that would be cut. */
const MOST_NAMED = 3

/**
 * Shows in a dry run how much of the observed traffic a change would cut. `observed` contains the counts and the
 * busiest pairs, and a sentence about them is added to the warnings. If certainly nothing is cut, this sentence is in
 * `observed` instead. Returns no `observed` if the change cannot cut anything.
 */
export function showObserved(observed: Observed): { warnings: string[]; observed?: object } {
  if (observed === null) return { warnings: [] }
  if (typeof observed === 'string') return { warnings: [observed], observed: { connections: null } }
  const { read, connections, pairs, undecided, hasPending } = observed
  const { window, rows, rowLimit, truncated } = read
  const span = dataSpan([read])
  const { cut_if_alone: ifAlone, draft_only: draftOnly, ...always } = connections
  const isNothing = pairs.length === 0 && !truncated
  const notes = [
    `Rows decided by the draft without and with the change${hasPending ? ' (its other pending changes included) and by active policy' : ''}; only traffic that the changed rules can concern was read.`,
    connections.undecided > 0 ? `undecided: ${undecided.replace(/^undecided /u, '')}.` : '',
    ...observed.modes,
    read.full > 0 ? `The limit of ${rowLimit} rows was reached, so all counts are lower bounds.` : '',
    read.announced === null ? '' : `The PCE counted ${read.announced} rows and sent ${read.pceFlows}: lower bounds.`,
    // The coverage note is created without advice on how to read the remaining traffic, because this advice fits only
    // tools with a time window.
    coverageNote({ ...read, full: 0, announced: null }),
    pairs.length > MOST_PAIRS ? REST : '',
  ]
  return {
    warnings: isNothing ? [] : [describe(observed)],
    observed: {
      ...(isNothing && { message: describe(observed) }),
      window,
      rows,
      ...(truncated && { flows_truncated: true, row_limit: rowLimit }),
      ...(span !== null && { data_span: span }),
      connections: {
        ...always,
        ...(ifAlone > 0 && { cut_if_alone: ifAlone }),
        ...(draftOnly > 0 && { draft_only: draftOnly }),
      },
      ...(pairs.length > 0 && {
        largest: pairs
          .slice(0, MOST_PAIRS)
          .map(({ ports, lastSeen: _lastSeen, ...pair }) => ({ ...pair, ports: ports.slice(0, MOST_PORTS) })),
        pairs_total: pairs.length,
      }),
      note: notes.filter(Boolean).join(' '),
      ...showAssumed(observed.assumes),
    },
  }
}

/** Returns an answer's warnings, those about observed traffic first; returns no field if there are none. */
export const withWarnings = (first: readonly string[], others: readonly string[] = []): { warnings?: string[] } =>
  first.length + others.length === 0 ? {} : { warnings: [...first, ...others] }

const WORDS: Record<CutEffect, string> = {
  cut: 'would be cut once provisioned',
  cut_once_enforced: 'would be cut once their workloads enforce policy',
  cut_if_alone: 'may be cut if this is provisioned without the other pending changes',
  undecided: 'may be cut',
  draft_only: 'would only be taken out of the draft (active policy does not allow this today)',
}

function describe({ read, connections, pairs, isDenied }: ObservedChange): string {
  const period = `the last ${OBSERVED_DAYS} days`
  if (read.rows === 0)
    return `No traffic that this can concern was seen in ${period}${read.truncated ? ', but not all was read' : ''}.`
  const seen = `f the traffic ${read.truncated ? 'read' : 'seen'} in ${period}`
  if (pairs.length === 0) {
    const verb = isDenied ? 'would be cut' : 'depends on what this takes away'
    return `None o${seen} ${verb}${read.truncated ? '; not all was read' : ''}.`
  }
  const least = read.truncated ? 'at least ' : ''
  const parts = CUT_FATES.filter((fate) => fate !== 'not_affected')
    .map((effect) => ({ effect, own: pairs.filter((pair) => pair.effect === effect).length }))
    .filter(({ own }) => own > 0)
    .map(({ effect, own }, at) => {
      const many = `${at === 0 ? '' : 'another '}${countOf(connections[effect], 'connection')} of ${countOf(own, 'pair')}`
      return `${least}${many} ${WORDS[effect]}`
    })
    .join(', ')
  const largest = pairs.slice(0, MOST_NAMED).map(namePair).join('; ')
  return `O${seen}, ${parts}. Largest: ${largest}.`
}

const namePair = ({ source, destination, connections, ports }: ObservedPair): string =>
  `${nameInQuotes(source)} → ${nameInQuotes(destination)} ${ports.slice(0, MOST_PORTS).join(', ')} (${connections})`

const nameInQuotes = (name: string): string => quote(clipText(name, LONGEST_NAME))
