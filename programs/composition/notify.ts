import { promises as dns } from 'node:dns'
import { createPost, type Post } from '../../notifications/post-message.js'
import { createRecorder, type EventRecorder, type RecorderOptions } from '../../notifications/record-events.js'
import { createSender, type Sender } from '../../notifications/send-messages.js'
import { createPceHosts } from '../../plugins/context/pce-hosts/create-pce-hosts.js'
import type { Fault, NotifyConfig } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { replicaOf } from '../process/name-replica.js'
import { readPackage } from '../process/read-package.js'

const HTTPS_PORT = 443

/** Returns the host and port of a receiver, and `where`, the form in which messages name both. */
export function placeOf({ url }: Pick<NotifyConfig, 'url'>): { host: string; port: number; where: string } {
  const { hostname, port, host: where } = new URL(url)
  return { host: hostname, port: port === '' ? HTTPS_PORT : Number(port), where }
}

/**
 * Creates the guard that checks the address of the receiver. It follows the same rules as for PCEs that users register
 * (D18), and permits only the host in the URL. A loopback address is permitted only if the URL itself names it.
 */
function guardReceiver(config: Pick<NotifyConfig, 'url'>) {
  const { host, port } = placeOf(config)
  const allowed = [`${host}:${port}`]
  const hosts = createPceHosts({ allowed, what: 'receiver', resolve: (name, options) => dns.lookup(name, options) })
  return { admitted: hosts.admit(host, port), ...hosts.guard(host, port) }
}

/**
 * Returns the reasons why no message may be sent to the receiver. It neither connects nor looks up the receiver's name.
 */
export function findReceiverFaults(config: NotifyConfig): Fault[] {
  const { admitted } = guardReceiver(config)
  if (!('problem' in admitted)) return []
  const remedy = 'Use the name or address of the receiver itself: docs/notifications.md.'
  return [{ problem: `MCP_NOTIFY_WEBHOOK_URL: ${admitted.problem}`, remedy }]
}

/** Creates the function that posts messages to the configured receiver. */
export function postTo(config: NotifyConfig): Post {
  const { name, version } = readPackage()
  return createPost({ url: config.url, guard: guardReceiver(config), userAgent: `${name}/${version}` })
}

interface TellerParts extends Pick<RecorderOptions, 'findApproval' | 'log' | 'meter' | 'now'> {
  state: Pick<State, 'outbox'>
  config: { http: { publicUrl: string }; replicaId?: string; notify: NotifyConfig }
  /** The function that posts the messages; tests replace it. */
  post?: Post
}

/** The notifier of a server: it records events as messages, and sends these to the receiver. */
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
