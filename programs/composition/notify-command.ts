import { randomUUID } from 'node:crypto'
import { createRecorder } from '../../notifications/record-events.js'
import { signMessage } from '../../notifications/sign-message.js'
import type { AuditLog } from '../../plugins/dispatcher/audit-log.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { HttpConfig, StateFileConfig } from '../../schemas/config.js'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { openState } from '../../storage/state/open-state.js'
import { replicaOf } from '../process/name-replica.js'
import { collectLines, type CommandReport } from './command-report.js'
import { placeOf, postTo } from './notify.js'
import { tellOfAudit } from './tell-of-audit.js'

/**
 * Runs a command that writes audit entries, and puts messages about these entries into the outbox, from which the
 * servers send them. Without a receiver of notifications, only the command runs. If the messages cannot be stored, the
 * report says so, and the effects of the command remain.
 */
export async function runTold(
  config: StateFileConfig,
  openAudit: () => AuditLog | null,
  run: (openAudit: () => AuditLog | null) => Promise<CommandReport>,
  now: () => number = () => Date.now(),
): Promise<CommandReport> {
  if (config.notify === undefined) return run(openAudit)
  const entries: AuditEntry[] = []
  const hears = { note: (entry: AuditEntry) => void entries.push(entry), noteAuditFailure: () => undefined }
  const report = await run(() => tellOfAudit(openAudit(), hears))
  const { lines, say } = collectLines()
  const warn = (line: string) => say('warn', line)
  const log = { warn: () => undefined, error: (_: object, message: string) => warn(message) }
  let isStored = false
  try {
    const state = config.database
      ? await openDatabase(config.database, { now, warn })
      : openState(config.path, { now, variable: config.variable, warn })
    try {
      const recorder = createRecorder({ ...config.notify, replica: replicaOf(config), outbox: state.outbox, log, now })
      for (const entry of entries) recorder.note(entry)
      isStored = await recorder.store()
    } finally {
      await state.close()
    }
  } catch {
    // The warning after this block says what this failure means.
  }
  if (!isStored) warn('The receiver of notifications will not be told of this: the message could not be stored')
  return { ...report, lines: [...report.lines, ...lines] }
}

/**
 * Runs `svc-mcp-http test-notification`: sends one message of type `test` to the receiver, in the same way as all other
 * messages, and reports the receiver's answer. The message is neither stored nor sent again.
 */
export async function testNotification(config: HttpConfig, now = Date.now()): Promise<CommandReport> {
  const { lines, say } = collectLines()
  if (config.mode === 'insecure' || config.notify === undefined) {
    say('error', 'MCP_NOTIFY_WEBHOOK_URL is not set, so there is nobody to tell')
    return { lines, ok: false }
  }
  const { http, notify } = config
  const { where } = placeOf(notify)
  const text = `A test of notifications from ${http.publicUrl}. Nothing has happened.`
  const data = { text, server: http.publicUrl, replica: replicaOf(config) }
  const body = JSON.stringify({ type: 'test', timestamp: new Date(now).toISOString(), data })
  const id = `msg_${randomUUID()}`
  const result = await postTo(notify)(body, signMessage(notify.secret, { id, body }, Math.floor(now / 1000)))
  const answer = 'status' in result ? `answered ${result.status}` : `did not answer: ${result.failure}`
  const ok = 'status' in result && result.status >= 200 && result.status < 300
  say(ok ? 'info' : 'error', `The receiver at ${where} ${answer}${ok ? `. It has the message ${id}` : ''}`)
  return { lines, ok }
}
