import type { Cell } from './exposure.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

/** A service that sends what it is told in the clear, secrets included, unless something else encrypts it. */
const CLEAR_TEXT = [21, 23, 69, 80, 512, 513, 514] as const

/** Passes today, because no policy is enforced or none judged it. */
export const passesUnenforced = ({ decision }: Cell): boolean =>
  decision === 'potentially_blocked' || decision === 'unknown'

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
