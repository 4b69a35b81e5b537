import { PceError } from '../errors.js'
import { sleep } from '../read-job.js'
import type { ClientSettings } from '../settings.js'
import type { Http } from '../transport.js'
import type { TrafficRun } from './traffic-run.js'

/** The PCE takes about 10 s (P39); what the query found must not be lost to a lookup that never ends. */
const LONGEST_LOOKUP_MS = 60_000
const FIRST_WAIT_MS = 1000
const WAIT_FACTOR = 1.5
const LONGEST_WAIT_MS = 10_000

/**
 * Has the PCE work out for a finished query what the draft policy would decide (P11); its next download has that in its rows.
 * Answers null when it is done, else why it cannot be: a release without it, rights that do not suffice, a lookup that fails or
 * does not end. The rows are there all the same, so only an end of the run itself is thrown.
 */
export async function addDraftDecisions(
  http: Http,
  settings: ClientSettings,
  href: string,
  run: TrafficRun,
): Promise<string | null> {
  try {
    await http.send('PUT', `${href}/update_rules`, { ...run.request, json: {} })
    let waited = 0
    for (let wait = FIRST_WAIT_MS; waited < LONGEST_LOOKUP_MS; wait = Math.min(wait * WAIT_FACTOR, LONGEST_WAIT_MS)) {
      await sleep(settings, Math.max(Math.min(wait, run.remainingMs()), 0), run.signal)
      run.remainingMs()
      run.signal.throwIfAborted()
      waited += wait
      const answer = await http.send('GET', href, run.request)
      const status = lookupStatus(answer.json<{ rules?: unknown } | undefined>()?.rules)
      run.report({ phase: 'draft', status: status ?? 'working' })
      if (status === 'completed' || status === 'done') return null
      if (status === 'failed') return 'the PCE could not look up the draft rules'
    }
    return `the PCE did not look up the draft rules within ${LONGEST_LOOKUP_MS / 1000} s`
  } catch (error) {
    if (run.signal.aborted || !(error instanceof PceError)) throw error
    return error.message
  }
}

/** A word, or an object that has it: no source shows the field's shape (P39). */
function lookupStatus(rules: unknown): string | undefined {
  const status = typeof rules === 'object' && rules !== null ? (rules as { status?: unknown }).status : rules
  return typeof status === 'string' ? status : undefined
}
