import {
  describeDefault,
  isProduction,
  isUnidentified,
  mayBeByDefault,
  isUnenforced,
  type Cell,
  type TrafficExposure,
} from './exposure.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator, type CheckOutcome } from './verdict.js'

/**
 * Checks that only known parties have access: labelled ends and those in a specific IP list. It is a FAIL if policy
 * allows traffic from an unknown source. Half-labelled sources, unknown destinations and traffic that passes unenforced
 * are WARNINGs.
 */
export const restrictedAccess = (directions: 'inbound' | 'both'): Evaluator =>
  evaluator(
    {
      name: `restricted access, ${directions}`,
      lookedAt: `${directions === 'both' ? 'inbound and outbound' : 'inbound'} traffic across the application boundary, by who the other end is`,
      needs: ['traffic', 'ipLists'],
    },
    ({ traffic }) => {
      const outbound = (cell: Cell) => directions === 'both' && cell.outbound
      return judgeViolations(traffic, {
        fail: {
          allowed_from_unknown: (cell) => cell.inbound && cell.decision === 'allowed' && isUnidentified(cell.source),
        },
        warn: {
          allowed_from_half_labelled: (cell) =>
            cell.inbound && cell.decision === 'allowed' && cell.source.identity === 'half',
          allowed_to_unknown: (cell) =>
            outbound(cell) && cell.decision === 'allowed' && isUnidentified(cell.destination),
          passing_unenforced: (cell) => (cell.inbound || outbound(cell)) && isUnenforced(cell),
        },
        note: {
          blocked: (cell) => (cell.inbound || outbound(cell)) && cell.decision === 'blocked',
        },
        byRules: (cell) => cell.inbound || outbound(cell),
      })
    },
  )

/**
 * Checks that environments are separated. Traffic that passes between two environments is a WARNING; it is a FAIL if
 * policy allows it on a high-risk port into or out of production.
 */
export const segregation = (ports: readonly number[]): Evaluator =>
  evaluator(
    {
      name: 'segregation of environments',
      lookedAt: 'traffic between ends with different env labels',
      needs: ['traffic'],
      ports,
    },
    ({ traffic }) => {
      const risky = new Set<number | null>(ports)
      const crosses = ({ source, destination }: Cell) =>
        source.env !== null && destination.env !== null && source.env !== destination.env
      const touches = ({ source, destination }: Cell) => isProduction(source.env) || isProduction(destination.env)
      const offends = (cell: Cell) =>
        crosses(cell) && touches(cell) && risky.has(cell.port) && cell.decision === 'allowed'
      if (
        traffic.count(({ source, destination }) => source.env !== null || destination.env !== null).rows +
          traffic.inside ===
        0
      ) {
        return notAssessed('No traffic of workloads with an env label.')
      }
      return judgeViolations(traffic, {
        fail: { allowed_high_risk_with_production: offends },
        warn: {
          allowed_between_environments: (cell) => crosses(cell) && cell.decision === 'allowed' && !offends(cell),
          passing_unenforced: (cell) => crosses(cell) && isUnenforced(cell),
        },
        note: { blocked: (cell) => crosses(cell) && cell.decision === 'blocked' },
      })
    },
  )

/**
 * Checks that connections with the internet are controlled. It is a FAIL if policy allows traffic, in either direction,
 * with a public address that is in no IP list. With `approved`, an IP list counts as an approval of its addresses; with
 * `refused`, internet access is unwanted altogether, so listed addresses are WARNINGs.
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
      return judgeViolations(traffic, {
        fail: {
          allowed_unlisted: (cell) => unlisted(cell) && cell.decision === 'allowed',
        },
        warn: {
          passing_unenforced: (cell) => withInternet(cell) && isUnenforced(cell),
          ...(listed === 'refused' && { allowed_by_ip_list: onList }),
        },
        note: {
          ...(listed === 'approved' && { allowed_by_ip_list: onList }),
          blocked: (cell) => withInternet(cell) && cell.decision === 'blocked',
        },
        byRules: withInternet,
      })
    },
  )

/** Ports of DNS, mail and web, which organisations usually route through their own resolvers, gateways and proxies. */
const MAIL_AND_WEB = [25, 53, 80, 110, 143, 443, 465, 587, 853, 993, 995] as const

/**
 * Reports DNS, mail and web traffic that goes straight to the internet. It is at most a WARNING, because a gateway that
 * the PCE does not see may still filter the traffic.
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
    const direct = ({ outbound, destination, port }: Cell) =>
      outbound && watched.has(port) && destination.network === 'public' && !destination.isListed
    return judgeViolations(traffic, {
      fail: {},
      warn: {
        allowed_unlisted: (cell) => direct(cell) && cell.decision === 'allowed',
        passing_unenforced: (cell) => direct(cell) && isUnenforced(cell),
      },
      note: { blocked: (cell) => direct(cell) && cell.decision === 'blocked' },
    })
  },
)

/** Returns the ends of a cell that are on the internet; the assessed end is never one of them. */
const internetEnds = ({ source, destination, inbound, outbound }: Cell) =>
  [...(inbound ? [source] : []), ...(outbound ? [destination] : [])].filter(({ network }) => network === 'public')

/**
 * Ports of services that send everything unencrypted, including passwords, unless something else encrypts the
 * connection.
 */
const CLEAR_TEXT = [21, 23, 69, 80, 512, 513, 514] as const

/**
 * Checks for high-risk ports (TCP and UDP) that are reachable from outside the application. It is a FAIL if policy
 * allows traffic from a source with neither an app nor an env label. Access from another application or a half-labelled
 * source, or access while nothing is enforced, is a WARNING. Blocked traffic shows that the control works.
 */
export const highRiskPorts = (ports: readonly number[]): Evaluator => {
  const watched = new Set<number | null>(ports)
  return evaluator(
    {
      name: `high-risk ports ${ports.join(', ')}`,
      lookedAt: `inbound traffic on TCP and UDP ports ${ports.join(', ')} from outside the application`,
      needs: ['traffic'],
      ports,
    },
    ({ traffic }) => {
      const risky = (cell: Cell) => cell.inbound && watched.has(cell.port)
      const unlabelled = (cell: Cell) => risky(cell) && cell.decision === 'allowed' && cell.source.identity === 'none'
      const others = (cell: Cell) => risky(cell) && cell.decision === 'allowed' && cell.source.identity !== 'none'
      const open = (cell: Cell) => risky(cell) && isUnenforced(cell)
      const rowsOf = (test: (cell: Cell) => boolean) => traffic.count(test).rows
      const counts = {
        allowed_from_unlabelled: rowsOf(unlabelled),
        allowed_from_other_applications: rowsOf(others),
        allowed_from_unmanaged_labelled: rowsOf((cell) => others(cell) && !cell.source.managed),
        [BY_DEFAULT]: rowsOf((cell) => risky(cell) && mayBeByDefault(cell)),
        passing_unenforced: rowsOf(open),
        blocked: rowsOf((cell) => risky(cell) && cell.decision === 'blocked'),
        inside_one_application: traffic.inside,
      }
      if (traffic.rows === 0) return notAssessed('No traffic in the window.', { counts })
      const fails = counts.allowed_from_unlabelled > 0
      const flows = traffic.busiest(fails ? unlabelled : (cell) => others(cell) || open(cell), MOST_EVIDENCE)
      const text = `${found(counts.allowed_from_unlabelled, 'row', 'allowed from unlabelled sources')}${found(counts.allowed_from_other_applications, 'row', 'allowed from other labelled sources')}${found(counts.passing_unenforced, 'row', WITHOUT_RULE)}${found(counts.blocked, 'row', 'blocked, as intended')}${describeDefault(traffic, risky)}`
      const status = fails
        ? 'FAIL'
        : counts.allowed_from_other_applications + counts.passing_unenforced > 0
          ? 'WARNING'
          : 'PASS'
      return {
        status,
        detail: text.trim() || 'None of these ports is used from outside.',
        evidence: { counts, ...(flows.length > 0 && { flows }) },
        assumes: traffic.assumes(risky),
      }
    },
  )
}

/**
 * Looks for clear-text services across application boundaries. Their use proves a lack of encryption, but their absence
 * does not prove encryption, because flow records say nothing about payloads. So this check never passes.
 */
export const clearText: Evaluator = evaluator(
  {
    name: 'clear-text services',
    lookedAt: `traffic on clear-text ports ${CLEAR_TEXT.join(', ')} in both directions`,
    needs: ['traffic'],
    ports: CLEAR_TEXT,
  },
  ({ traffic }) => {
    const clear = new Set<number | null>(CLEAR_TEXT)
    const isClear = (cell: Cell) => clear.has(cell.port)
    const allowed = traffic.count((cell) => isClear(cell) && cell.decision === 'allowed').rows
    const open = traffic.count((cell) => isClear(cell) && isUnenforced(cell)).rows
    const blocked = traffic.count((cell) => isClear(cell) && cell.decision === 'blocked').rows
    const counts = { allowed, passing_unenforced: open, blocked, inside_one_application: traffic.inside }
    if (allowed + open === 0) {
      const text = 'No clear-text service is in use; flows do not show whether other traffic is encrypted.'
      return notAssessed(text, { counts })
    }
    const flows = traffic.busiest((cell) => isClear(cell) && cell.decision !== 'blocked', MOST_EVIDENCE)
    const text = `${found(allowed, 'row', 'to clear-text services allowed')}${found(open, 'row', WITHOUT_RULE)}`
    return { status: allowed > 0 ? 'FAIL' : 'WARNING', detail: text.trim(), evidence: { counts, flows } }
  },
)

/** Says why traffic that the PCE calls potentially blocked passes, in visibility and in selective mode alike. */
const WITHOUT_RULE = 'passing without a rule, because the mode does not stop them'

/** Wording for row counts whose field names do not read well. */
const PHRASES: Record<string, string> = {
  passing_unenforced: WITHOUT_RULE,
  allowed_unlisted: 'allowed to or from internet addresses in no IP list',
  allowed_by_ip_list: 'allowed to or from internet addresses in an IP list',
  allowed_from_unknown: 'allowed from unlabelled sources in no IP list',
  allowed_to_unknown: 'allowed to unlabelled destinations in no IP list',
}

/** The count that `describeDefault` explains in words, so it gets no phrase of its own. */
const BY_DEFAULT = 'allowed_by_default_possible'

type Tests = Record<string, ((cell: Cell) => boolean) | undefined>

/**
 * Counts the rows that violate a control. Rows that match `fail` make it a FAIL; otherwise rows that match `warn` make
 * it a WARNING. Rows that match `note` are only reported. The detail also says how many of the allowed rows that match
 * `byRules` are possibly not allowed by a rule.
 */
export function judgeViolations(
  traffic: TrafficExposure,
  { fail, warn, note, byRules }: { fail: Tests; warn: Tests; note: Tests; byRules?: (cell: Cell) => boolean },
): CheckOutcome {
  const count = (tests: Tests) =>
    Object.fromEntries(
      Object.entries(tests).map(([name, test]) => [name, test === undefined ? 0 : traffic.count(test).rows]),
    )
  const [failed, warned, noted] = [
    count(fail),
    count(warn),
    count({
      ...note,
      ...(byRules !== undefined && { [BY_DEFAULT]: (cell: Cell) => byRules(cell) && mayBeByDefault(cell) }),
    }),
  ]
  const counts = { ...failed, ...warned, ...noted, inside_one_application: traffic.inside }
  if (traffic.rows === 0) return notAssessed('No traffic in the window.', { counts })
  const sum = (of: Record<string, number>) => Object.values(of).reduce((total, one) => total + one, 0)
  const status = sum(failed) > 0 ? 'FAIL' : sum(warned) > 0 ? 'WARNING' : 'PASS'
  const tests = Object.values(status === 'FAIL' ? fail : warn)
  const flows = traffic.busiest((cell) => tests.some((test) => test?.(cell) === true), MOST_EVIDENCE)
  const all = [...Object.entries(failed), ...Object.entries(warned), ...Object.entries(noted)]
  const text = all
    .filter(([name]) => name !== BY_DEFAULT)
    .map(([name, rows]) => found(rows, 'row', PHRASES[name] ?? name.replaceAll('_', ' ')))
    .join('')
  const doubt = byRules === undefined ? '' : describeDefault(traffic, byRules)
  return {
    status,
    detail: `${text}${doubt}`.trim() || 'No such traffic.',
    evidence: { counts, ...(flows.length > 0 && { flows }) },
    ...(byRules !== undefined && { assumes: traffic.assumes(byRules) }),
  }
}
