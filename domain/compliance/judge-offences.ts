import type { Cell, Exposure } from './exposure.js'
import { found, MOST_EVIDENCE, notAssessed, type Outcome } from './verdict.js'

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
