import { isProduction, isUnidentified, passesUnenforced, type Cell, type Exposure } from './exposure.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator, type Outcome } from './verdict.js'

/**
 * Access is restricted to known parties: labelled ends and those of IP lists made for them. Policy that lets somebody unknown in
 * fails it. Half-labelled sources, unknown destinations, and whatever passes without being enforced are warnings.
 */
export const restrictedAccess = (directions: 'inbound' | 'both'): Evaluator =>
  evaluator(
    {
      name: `restricted access, ${directions}`,
      lookedAt: `${directions === 'both' ? 'inbound and outbound' : 'inbound'} traffic from outside the application, by who the other end is`,
      needs: ['traffic', 'ipLists'],
    },
    ({ traffic }) => {
      const outbound = (cell: Cell) => directions === 'both' && cell.outbound
      return judgeOffences(traffic, {
        fail: {
          allowed_from_unknown: (cell) => cell.inbound && cell.decision === 'allowed' && isUnidentified(cell.source),
        },
        warn: {
          allowed_from_half_labelled: (cell) =>
            cell.inbound && cell.decision === 'allowed' && cell.source.identity === 'half',
          allowed_to_unknown: (cell) => outbound(cell) && cell.decision === 'allowed' && isUnidentified(cell.target),
          passing_unenforced: (cell) => (cell.inbound || outbound(cell)) && passesUnenforced(cell),
        },
        note: {
          blocked: (cell) => (cell.inbound || outbound(cell)) && cell.decision === 'blocked',
          allowed_by_default_possible: (cell) => (cell.inbound || outbound(cell)) && cell.byDefault,
        },
      })
    },
  )

/**
 * Environments are kept apart. Traffic between two of them that passes is a warning; on a high-risk port into or out of
 * production, and allowed, it fails.
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
      const crosses = ({ source, target }: Cell) =>
        source.env !== null && target.env !== null && source.env !== target.env
      const touches = ({ source, target }: Cell) => isProduction(source.env) || isProduction(target.env)
      const offends = (cell: Cell) =>
        crosses(cell) && touches(cell) && risky.has(cell.port) && cell.decision === 'allowed'
      if (
        traffic.count(({ source, target }) => source.env !== null || target.env !== null).rows + traffic.inside ===
        0
      ) {
        return notAssessed('No traffic of anything with an env label.')
      }
      return judgeOffences(traffic, {
        fail: { allowed_high_risk_with_production: offends },
        warn: {
          allowed_between_environments: (cell) => crosses(cell) && cell.decision === 'allowed' && !offends(cell),
          passing_unenforced: (cell) => crosses(cell) && passesUnenforced(cell),
        },
        note: { blocked: (cell) => crosses(cell) && cell.decision === 'blocked' },
      })
    },
  )

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

/** A service that sends what it is told in the clear, secrets included, unless something else encrypts it. */
const CLEAR_TEXT = [21, 23, 69, 80, 512, 513, 514] as const

/**
 * High-risk ports (TCP and UDP) that are reachable from outside the application. One that policy allows from a source without app
 * and env label fails the check; from another application, an unmanaged or half-labelled source, or while nothing is enforced, it
 * is a warning. What is blocked shows that the control works.
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
      const open = (cell: Cell) => risky(cell) && passesUnenforced(cell)
      const rowsOf = (test: (cell: Cell) => boolean) => traffic.count(test).rows
      const counts = {
        allowed_from_unlabelled: rowsOf(unlabelled),
        allowed_from_other_applications: rowsOf(others),
        allowed_from_unmanaged_labelled: rowsOf((cell) => others(cell) && !cell.source.managed),
        allowed_by_default_possible: rowsOf((cell) => risky(cell) && cell.byDefault),
        passing_unenforced: rowsOf(open),
        blocked: rowsOf((cell) => risky(cell) && cell.decision === 'blocked'),
        inside_one_application: traffic.inside,
      }
      if (traffic.rows === 0) return notAssessed('No traffic in the window.', { counts })
      const fails = counts.allowed_from_unlabelled > 0
      const flows = traffic.busiest(fails ? unlabelled : (cell) => others(cell) || open(cell), MOST_EVIDENCE)
      const text = `${found(counts.allowed_from_unlabelled, 'row', 'allowed from unlabelled sources')}${found(counts.allowed_from_other_applications, 'row', 'allowed from other labelled sources')}${found(counts.passing_unenforced, 'row', 'passing because nothing is enforced')}${found(counts.blocked, 'row', 'blocked, as it should be')}`
      const status = fails
        ? 'FAIL'
        : counts.allowed_from_other_applications + counts.passing_unenforced > 0
          ? 'WARNING'
          : 'PASS'
      return {
        status,
        detail: text.trim() || 'None is used from outside.',
        evidence: { counts, ...(flows.length > 0 && { flows }) },
      }
    },
  )
}

/**
 * Clear-text services across an application's boundary. That one is used shows a lack of encryption; that none is does not show
 * encryption, because a flow record says nothing of what it carries, so this check never passes.
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
    const open = traffic.count((cell) => isClear(cell) && passesUnenforced(cell)).rows
    const blocked = traffic.count((cell) => isClear(cell) && cell.decision === 'blocked').rows
    const counts = { allowed, passing_unenforced: open, blocked, inside_one_application: traffic.inside }
    if (allowed + open === 0) {
      const text = 'No clear-text service passes; whether other traffic is encrypted cannot be told from flows.'
      return notAssessed(text, { counts })
    }
    const flows = traffic.busiest((cell) => isClear(cell) && cell.decision !== 'blocked', MOST_EVIDENCE)
    const text = `${found(allowed, 'row', 'of clear-text services allowed')}${found(open, 'row', 'passing because nothing is enforced')}`
    return { status: allowed > 0 ? 'FAIL' : 'WARNING', detail: text.trim(), evidence: { counts, flows } }
  },
)

/** What the counts of rows mean, where their names alone do not read well. */
const PHRASES: Record<string, string> = {
  passing_unenforced: 'passing because nothing is enforced',
  allowed_unlisted: 'allowed with internet addresses of no IP list',
  allowed_by_ip_list: 'allowed with internet addresses of an IP list',
  allowed_from_unknown: 'allowed from unlabelled sources in no IP list',
  allowed_to_unknown: 'allowed to unlabelled destinations in no IP list',
  allowed_by_default_possible: 'may be allowed only because no deny rule matched (selective mode)',
}

type Tests = Record<string, ((cell: Cell) => boolean) | undefined>

/** Counts rows that offend; `fail` beats `warn`, and `note` is only told. */
export function judgeOffences(
  traffic: Exposure,
  { fail, warn, note }: { fail: Tests; warn: Tests; note: Tests },
): Outcome {
  const count = (tests: Tests) =>
    Object.fromEntries(
      Object.entries(tests).map(([name, test]) => [name, test === undefined ? 0 : traffic.count(test).rows]),
    )
  const [failed, warned, noted] = [count(fail), count(warn), count(note)]
  const counts = { ...failed, ...warned, ...noted, inside_one_application: traffic.inside }
  if (traffic.rows === 0) return notAssessed('No traffic in the window.', { counts })
  const sum = (of: Record<string, number>) => Object.values(of).reduce((total, one) => total + one, 0)
  const status = sum(failed) > 0 ? 'FAIL' : sum(warned) > 0 ? 'WARNING' : 'PASS'
  const tests = Object.values(status === 'FAIL' ? fail : warn)
  const flows = traffic.busiest((cell) => tests.some((test) => test?.(cell) === true), MOST_EVIDENCE)
  const told = [...Object.entries(failed), ...Object.entries(warned), ...Object.entries(noted)]
  const text = told.map(([name, rows]) => found(rows, 'row', PHRASES[name] ?? name.replaceAll('_', ' '))).join('')
  return {
    status,
    detail: text.trim() || 'Nothing of the kind.',
    evidence: { counts, ...(flows.length > 0 && { flows }) },
  }
}
