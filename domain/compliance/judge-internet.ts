import { passesUnenforced } from './judge-ports.js'
import type { Cell } from './exposure.js'
import { judgeOffences } from './judge-offences.js'
import { evaluator, type Evaluator } from './verdict.js'

/**
 * Connections with the internet are controlled: an address of no IP list that policy allows, either way, fails it. `approved`
 * takes IP lists for approvals; `refused` wants no internet at all, so that those are warnings.
 */
export const internetAccess = (listed: 'approved' | 'refused'): Evaluator =>
  evaluator(
    {
      name: `internet access, lists ${listed}`,
      lookedAt: 'traffic with public addresses that belong to no workload, in both directions',
      needs: ['traffic', 'ipLists'],
    },
    ({ traffic }) => {
      const withInternet = (cell: Cell) => internetEnds(cell).length > 0
      const unlisted = (cell: Cell) => internetEnds(cell).some((end) => !end.isListed)
      const onList = (cell: Cell) => withInternet(cell) && !unlisted(cell) && cell.decision === 'allowed'
      return judgeOffences(traffic, {
        fail: {
          allowed_unlisted: (cell) => unlisted(cell) && cell.decision === 'allowed',
        },
        warn: {
          passing_unenforced: (cell) => withInternet(cell) && passesUnenforced(cell),
          ...(listed === 'refused' && { allowed_by_ip_list: onList }),
        },
        note: {
          ...(listed === 'approved' && { allowed_by_ip_list: onList }),
          blocked: (cell) => withInternet(cell) && cell.decision === 'blocked',
          allowed_by_default_possible: (cell) => withInternet(cell) && cell.byDefault,
        },
      })
    },
  )

/** Names, mail and web, which an organisation wants to go through its own resolvers, gateways and proxies. */
const MAIL_AND_WEB = [25, 53, 80, 110, 143, 443, 465, 587, 853, 993, 995] as const

/**
 * Mail, name and web traffic that reaches the internet directly. A gateway this PCE does not see may still filter it, so it is a
 * warning at most.
 */
export const directMailAndWeb: Evaluator = evaluator(
  {
    name: 'direct mail and web',
    lookedAt: `outbound traffic to public addresses in no IP list on ports ${MAIL_AND_WEB.join(', ')}`,
    needs: ['traffic', 'ipLists'],
    ports: MAIL_AND_WEB,
  },
  ({ traffic }) => {
    const watched = new Set<number | null>(MAIL_AND_WEB)
    const direct = ({ outbound, target, port }: Cell) =>
      outbound && watched.has(port) && target.network === 'public' && !target.isListed
    return judgeOffences(traffic, {
      fail: {},
      warn: {
        allowed_unlisted: (cell) => direct(cell) && cell.decision === 'allowed',
        passing_unenforced: (cell) => direct(cell) && passesUnenforced(cell),
      },
      note: { blocked: (cell) => direct(cell) && cell.decision === 'blocked' },
    })
  },
)

/** The ends that are in the internet and not what is assessed. */
const internetEnds = ({ source, target, inbound, outbound }: Cell) =>
  [...(inbound ? [source] : []), ...(outbound ? [target] : [])].filter(({ network }) => network === 'public')
