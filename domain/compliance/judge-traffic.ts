import {
  alternatives,
  describeDoubt,
  isOpen,
  isProduction,
  isUnidentified,
  unenforced,
  type Cell,
  type CellTest,
  type TrafficExposure,
} from './exposure.js'
import {
  evaluator,
  found,
  MOST_EVIDENCE,
  notAssessed,
  unprovenBy,
  type Evaluator,
  type CheckOutcome,
} from './verdict.js'

/**
 * Checks that only known parties have access, that is, parties that have labels or are in a specific IP list. FAIL:
 * policy allows traffic from an unknown source. WARNING: half-labelled sources, unknown destinations, and traffic that
 * passes only because nothing stops it.
 */
export const restrictedAccess = (directions: 'inbound' | 'both'): Evaluator =>
  evaluator(
    {
      name: `restricted access, ${directions}`,
      lookedAt: `${directions === 'both' ? 'inbound and outbound' : 'inbound'} traffic across the application boundary, by who the other end is`,
      needs: ['traffic', 'policy', 'ipLists'],
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
          ...unenforced((cell) => cell.inbound || outbound(cell)),
        },
        note: {
          blocked: (cell) => (cell.inbound || outbound(cell)) && cell.decision === 'blocked',
        },
      })
    },
  )

/**
 * Checks that environments are separated. Traffic that passes between two environments is a WARNING. If policy allows
 * such traffic on a high-risk port into or out of production, it is a FAIL.
 */
export const segregation = (ports: readonly number[]): Evaluator =>
  evaluator(
    {
      name: 'segregation of environments',
      lookedAt: 'traffic between ends with different env labels',
      needs: ['traffic', 'policy'],
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
          ...unenforced(crosses),
        },
        note: { blocked: (cell) => crosses(cell) && cell.decision === 'blocked' },
      })
    },
  )

/**
 * Checks that connections with the internet are controlled. FAIL: policy allows traffic, in either direction, with a
 * public address that is in no IP list. With `approved`, an address in an IP list counts as approved. With `refused`,
 * no internet access is allowed, so traffic with listed addresses is a WARNING.
 */
export const internetAccess = (listed: 'approved' | 'refused'): Evaluator =>
  evaluator(
    {
      name: `internet access, lists ${listed}`,
      lookedAt: 'traffic with public addresses that belong to no workload, in both directions',
      needs: ['traffic', 'policy', 'ipLists'],
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
          ...unenforced(withInternet),
          ...(listed === 'refused' && { allowed_by_ip_list: onList }),
        },
        note: {
          ...(listed === 'approved' && { allowed_by_ip_list: onList }),
          blocked: (cell) => withInternet(cell) && cell.decision === 'blocked',
        },
      })
    },
  )

/**
 * The ports of DNS, mail and web. Organisations usually route such traffic through their own resolvers, gateways and
 * proxies.
 */
const MAIL_AND_WEB = [25, 53, 80, 110, 143, 443, 465, 587, 853, 993, 995] as const

/**
 * Reports DNS, mail and web traffic that goes directly to the internet. The result is at most a WARNING, because a
 * gateway that the PCE does not see may still filter the traffic.
 */
export const directMailAndWeb: Evaluator = evaluator(
  {
    name: 'direct mail and web',
    lookedAt: `outbound traffic to public addresses in no IP list on ports ${MAIL_AND_WEB.join(', ')}`,
    needs: ['traffic', 'policy', 'ipLists'],
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
        ...unenforced(direct),
      },
      note: { blocked: (cell) => direct(cell) && cell.decision === 'blocked' },
    })
  },
)

/**
 * Returns those ends of a cell that are on the internet. An end that belongs to the assessed part is never returned.
 */
const internetEnds = ({ source, destination, inbound, outbound }: Cell) =>
  [...(inbound ? [source] : []), ...(outbound ? [destination] : [])].filter(({ network }) => network === 'public')

/** Ports of services that send everything, including passwords, without encryption of their own. */
const CLEAR_TEXT = [21, 23, 69, 80, 512, 513, 514] as const

/**
 * Checks for high-risk ports (TCP and UDP) that can be reached from outside the application. FAIL: policy allows
 * traffic from a source with neither an app nor an env label. WARNING: access from another application or a
 * half-labelled source, or access while nothing is enforced. Blocked traffic shows that the control works.
 */
export const highRiskPorts = (ports: readonly number[]): Evaluator => {
  const watched = new Set<number | null>(ports)
  return evaluator(
    {
      name: `high-risk ports ${ports.join(', ')}`,
      lookedAt: `inbound traffic on TCP and UDP ports ${ports.join(', ')} from outside the application`,
      needs: ['traffic', 'policy'],
      ports,
    },
    ({ traffic }) => {
      const risky = (cell: Cell) => cell.inbound && watched.has(cell.port)
      const others = (cell: Cell) => risky(cell) && cell.decision === 'allowed' && cell.source.identity !== 'none'
      return judgeViolations(traffic, {
        fail: {
          allowed_from_unlabelled: (cell) =>
            risky(cell) && cell.decision === 'allowed' && cell.source.identity === 'none',
        },
        warn: {
          allowed_from_other_applications: others,
          ...unenforced(risky),
        },
        note: { blocked: (cell) => risky(cell) && cell.decision === 'blocked' },
        also: { allowed_from_unmanaged_labelled: (cell) => others(cell) && !cell.source.managed },
        phrases: {
          allowed_from_unlabelled: 'allowed from unlabelled sources',
          allowed_from_other_applications: 'allowed from other labelled sources',
          blocked: 'blocked, as intended',
        },
        none: 'None of these ports is used from outside.',
      })
    },
  )
}

/**
 * Looks for clear-text services across application boundaries. Their use proves a lack of encryption. Their absence
 * does not prove encryption, because flow records do not show payloads, so this check never passes.
 */
export const clearText: Evaluator = evaluator(
  {
    name: 'clear-text services',
    lookedAt: `traffic on clear-text ports ${CLEAR_TEXT.join(', ')} in both directions`,
    needs: ['traffic', 'policy'],
    ports: CLEAR_TEXT,
  },
  ({ traffic }) => {
    const clear = new Set<number | null>(CLEAR_TEXT)
    const isClear = (cell: Cell) => clear.has(cell.port)
    const outcome = judgeViolations(traffic, {
      fail: { allowed: (cell) => isClear(cell) && cell.decision === 'allowed' },
      warn: unenforced(isClear),
      note: { blocked: (cell) => isClear(cell) && cell.decision === 'blocked' },
      phrases: { allowed: 'to clear-text services allowed' },
    })
    if (outcome.status === 'FAIL' || outcome.status === 'WARNING') return outcome
    const text = `No clear-text service is known to be in use; flows do not show whether other traffic is encrypted. ${describeDoubt(traffic, isClear)}`
    return { ...outcome, ...notAssessed(text.trim()) }
  },
)

/**
 * The phrase for traffic that passes although the PCE reports it as potentially blocked. The reason is the same in
 * visibility mode and in selective mode.
 */
const WITHOUT_RULE = 'passing without a rule, because the mode does not stop them'

/** Phrases for counts of rows whose field names cannot be used in a sentence. */
const PHRASES: Record<string, string> = {
  passing_unenforced: WITHOUT_RULE,
  enforced_at_neither_end: 'passing because neither end enforces policy',
  allowed_unlisted: 'allowed to or from internet addresses in no IP list',
  allowed_by_ip_list: 'allowed to or from internet addresses in an IP list',
  allowed_from_unknown: 'allowed from unlabelled sources in no IP list',
  allowed_to_unknown: 'allowed to unlabelled destinations in no IP list',
}

type Tests = Record<string, CellTest | undefined>

interface Violations {
  fail: Tests
  warn: Tests
  note: Tests
  /**
   * Functions that select further rows to count. The counts are part of the evidence, but the check's detail does not
   * mention them.
   */
  also?: Tests
  /** Phrases for counts that only this check has. */
  phrases?: Readonly<Record<string, string>>
  /** The check's detail if no row matches. */
  none?: string
}

/**
 * Counts the rows that violate a control. Rows that match `fail` make it a FAIL; otherwise, rows that match `warn` make
 * it a WARNING. Rows that match `note` are only reported. A row with several possible decisions is counted as undecided
 * and affects the status as the mildest of these decisions would. If another of them would violate the control, the
 * check cannot PASS: it is INFO, or NOT_ASSESSED if all rows are undecided.
 */
export function judgeViolations(
  traffic: TrafficExposure,
  { fail, warn, note, also = {}, phrases = {}, none = 'No such traffic.' }: Violations,
): CheckOutcome {
  const rowsOf = (test: CellTest) => traffic.count(test).rows
  const count = (tests: Tests) =>
    Object.fromEntries(
      Object.entries(tests).map(([name, test]) => [
        name,
        test === undefined ? 0 : rowsOf((cell) => !isOpen(cell) && test(cell)),
      ]),
    )
  const told = { ...count(fail), ...count(warn), ...count(note) }
  const matches = (tests: Tests, cell: Cell) => Object.values(tests).some((test) => test?.(cell) === true)
  const weigh = (cell: Cell) => (matches(fail, cell) ? 2 : matches(warn, cell) ? 1 : 0)
  const isAbout: CellTest = (cell) =>
    alternatives(cell).some((one) => weigh(one) > 0 || matches(note, one) || matches(also, one))
  const mildest = (cell: Cell) => Math.min(...alternatives(cell).map(weigh))
  const worst = (cell: Cell) => Math.max(...alternatives(cell).map(weigh))
  const undecided = rowsOf((cell) => isOpen(cell) && isAbout(cell))
  const counts = {
    ...told,
    ...count(also),
    ...(undecided > 0 && { undecided }),
    inside_one_application: traffic.inside,
  }
  if (traffic.rows === 0) return notAssessed('No traffic in the window.', { counts })
  const isFailed = rowsOf((cell) => mildest(cell) === 2) > 0
  const isWarned = rowsOf((cell) => mildest(cell) === 1) > 0
  const doubtful = rowsOf((cell) => mildest(cell) === 0 && worst(cell) > 0)
  const status = isFailed ? 'FAIL' : isWarned ? 'WARNING' : unprovenBy(doubtful, rowsOf(isAbout))
  const flows = traffic.busiest((cell) => (isFailed ? mildest(cell) === 2 : worst(cell) > 0), MOST_EVIDENCE)
  const text = Object.entries(told)
    .map(([name, rows]) => found(rows, 'row', phrases[name] ?? PHRASES[name] ?? name.replaceAll('_', ' ')))
    .join('')
  return {
    status,
    detail: `${text}${describeDoubt(traffic, isAbout)}`.trim() || none,
    evidence: { counts, ...(flows.length > 0 && { flows }) },
    assumes: traffic.assumes(isAbout),
  }
}
