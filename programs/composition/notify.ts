import { randomUUID } from 'node:crypto'
import { promises as dns } from 'node:dns'
import { createPost, type Post } from '../../notifications/post-message.js'
import { createRecorder, type EventRecorder, type RecorderOptions } from '../../notifications/record-events.js'
import { createSender, type Sender } from '../../notifications/send-messages.js'
import { signMessage } from '../../notifications/sign-message.js'
import { createPceHosts } from '../../plugins/context/pce-hosts/create-pce-hosts.js'
import type { AuditLog } from '../../plugins/dispatcher/audit-log.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Fault, HttpConfig, NotifyConfig } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { replicaOf } from '../process/name-replica.js'
import { readPackage } from '../process/read-package.js'
import { collectLines, type CommandReport } from './command-report.js'

const HTTPS_PORT = 443

/** The host and port of a receiver. */
function placeOf({ url }: Pick<NotifyConfig, 'url'>): { host: string; port: number; where: string } {
  const { hostname, port, host: where } = new URL(url)
  return { host: hostname, port: port === '' ? HTTPS_PORT : Number(port), where }
}

/**
 * Creates the guard of the receiver's address. The rules are those for PCEs that users register (D18), with the receiver
 * as the only permitted host: a loopback address is permitted only if the URL itself names it.
 */
function guardReceiver(config: Pick<NotifyConfig, 'url'>) {
  const { host, port } = placeOf(config)
  const allowed = [`${host}:${port}`]
  const hosts = createPceHosts({ allowed, what: 'receiver', resolve: (name, options) => dns.lookup(name, options) })
  return { admitted: hosts.admit(host, port), ...hosts.guard(host, port) }
}

/** Finds why no message may be sent to the receiver, without connecting or looking its name up. */
export function findReceiverFaults(config: NotifyConfig): Fault[] {
  const { admitted } = guardReceiver(config)
  if (!('problem' in admitted)) return []
  const remedy = 'Use the name or address of the receiver itself: docs/notifications.md.'
  return [{ problem: `MCP_NOTIFY_WEBHOOK_URL: ${admitted.problem}`, remedy }]
}

function postTo(config: NotifyConfig): Post {
  const { name, version } = readPackage()
  return createPost({ url: config.url, guard: guardReceiver(config), userAgent: `${name}/${version}` })
}

interface TellerParts extends Pick<RecorderOptions, 'findApproval' | 'log' | 'meter' | 'now'> {
  state: Pick<State, 'outbox'>
  config: { http: { publicUrl: string }; replicaId?: string; notify: NotifyConfig }
  /** Posts the messages; tests replace it. */
  post?: Post
}

/** What a server with a receiver has: it records the events, and sends them. */
export type Notifier = EventRecorder & Pick<Sender, 'tick' | 'waiting' | 'close'>

/** Creates the notifier of a server. */
export function createNotifier({ state: { outbox }, config, post, ...parts }: TellerParts): Notifier {
  const { notify, http } = config
  const teller = { publicUrl: http.publicUrl, replica: replicaOf(config), names: notify.names }
  let wake = (): void => undefined
  const recorder = createRecorder({ ...parts, ...teller, outbox, added: () => wake() })
  const sender = createSender({
    ...parts,
    outbox,
    recorder,
    post: post ?? postTo(notify),
    secret: notify.secret,
    host: placeOf(notify).where,
  })
  wake = () => sender.wake()
  return { ...recorder, tick: () => sender.tick(), waiting: sender.waiting, close: () => sender.close() }
}

/**
 * Wraps the audit log so that the recorder sees every entry that is in it, and every failure to use it. The entries are
 * the only source of notifications: what is audited with a known type, by whatever part of the server, is told.
 */
export function tellOfAudit<A extends AuditLog | null>(
  audit: A,
  recorder: Pick<EventRecorder, 'note' | 'noteAuditFailure'>,
): A {
  if (audit === null) return audit
  const failed = (operation: string, error: unknown): never => {
    recorder.noteAuditFailure(operation)
    throw error
  }
  return {
    ...audit,
    write(entry: AuditEntry) {
      try {
        audit.write(entry)
      } catch (error) {
        failed('write', error)
      }
      recorder.note(entry)
    },
    async writeInTurn(entry: AuditEntry) {
      await audit.writeInTurn(entry).catch((error: unknown) => failed('write', error))
      recorder.note(entry)
    },
    sync: () => audit.sync().catch((error: unknown) => failed('sync', error)),
    async check() {
      try {
        await audit.check()
      } catch (error) {
        failed('check', error)
      }
    },
  }
}

/**
 * Runs `svc-mcp-http test-notification`: sends one message of the type `test` to the receiver, signed and addressed like
 * all others, and reports what it answered. Nothing is stored and nothing repeated.
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
