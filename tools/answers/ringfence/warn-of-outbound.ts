import { countOf } from '../../../domain/text/count-of.js'
import { isSameApplication } from '../../../domain/ringfence/collect-peers.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'

/** Destinations and ports of each that the sentence names at most. */
const MOST_NAMED = 5

/** What a standard ringfence costs its own workloads in full enforcement; empty where that is nothing. */
export function describeOutbound({ plan, ranking, discovery }: Prepared): string {
  const { certain, byDefault, destinations } = plan.lostOutbound
  if (destinations.length === 0) return ''
  const rest = destinations.length - MOST_NAMED
  const top = destinations.slice(0, MOST_NAMED).map(({ name, ports }) => {
    const more = ports.length > MOST_NAMED ? ', …' : ''
    return `${name} on ${ports.slice(0, MOST_NAMED).join(', ')}${more}`
  })
  const blind = discovery.reads.outbound.draftUnavailable !== null ? ' or by rules the PCE did not name' : ''
  const selective =
    byDefault > 0
      ? `, ${certain === 0 ? 'all' : byDefault} of them allowed today only because selective mode lets out what nothing denies${blind}`
      : ''
  const ranked = ranking === null || typeof ranking === 'string' ? [] : ranking.rows
  const infrastructure = destinations.filter(({ application }) =>
    ranked.some(
      (row) => row.tier !== 'Standard Application' && application !== null && isSameApplication(row, application),
    ),
  )
  return [
    `A ringfence has no outbound rules: in full enforcement the application's own workloads also drop outbound traffic that no rule allows (${countOf(certain + byDefault, 'connection')} in the window${selective}).`,
    ` Busiest: ${top.join('; ')}${rest > 0 ? ` and ${rest} more` : ''}.`,
    infrastructure.length > 0
      ? ` Infrastructure services among them: ${infrastructure
          .slice(0, MOST_NAMED)
          .map(({ name }) => name)
          .join(', ')}.`
      : '',
  ].join('')
}
