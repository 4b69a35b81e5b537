/** One process that tells a receiver of audit entries: its recorder and its sender, over whichever store. */
import type { Test } from 'tap'
import type { Post } from '../../notifications/post-message.js'
import { createRecorder, type RecorderOptions } from '../../notifications/record-events.js'
import { createSender } from '../../notifications/send-messages.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { State } from '../../schemas/state.js'
import type { FileState } from '../../storage/state/open-state.js'
import { type Receiver, SECRET } from './receiver.js'

export const START = Date.parse('2026-06-15T12:00:00Z')

export const entryOf = (facts: Partial<AuditEntry>): AuditEntry => ({
  ts: '2026-06-15T12:00:00.000Z',
  phase: 'decision',
  decision: 'denied',
  tool: 'provision-policy',
  role: 'operator',
  iss: 'https://idp.example.test/',
  sub: 'ann',
  request_id: 'r-1',
  mode: 'shared',
  transport: 'http',
  ...facts,
})
export const asked = (id: string) => entryOf({ reason: 'confirm_required', approval: 'asked', approval_id: id })
export const refused = (more: Partial<AuditEntry> = {}) => entryOf({ reason: 'out_of_scope', ...more })

export interface SendingWorld {
  receiver: Receiver
  clock: { now: number }
  state: State | FileState
  /** As the receiver is posted to unless told otherwise. */
  post?: Post
  names?: boolean
  findApproval?: RecorderOptions['findApproval']
}

/** Jitter is at its longest. `close` leaves the store open. */
export function startSending(
  t: Test,
  { receiver, clock, state, post = receiver.post(), names = false, findApproval }: SendingWorld,
) {
  const now = () => clock.now
  const fates: Record<string, number> = {}
  const lines: string[] = []
  const say = (facts: object, text: string) => void lines.push(`${text} ${JSON.stringify(facts)}`)
  const common = {
    now,
    log: { warn: say, error: say },
    meter: {
      notification: (fate: string, times = 1) => void (fates[fate] = (fates[fate] ?? 0) + times),
    },
  }
  const store = { outbox: { ...state.outbox } }
  const recorder = createRecorder({
    ...common,
    outbox: { add: (messages) => store.outbox.add(messages) },
    publicUrl: 'https://mcp.example.test',
    replica: 'mcp-1',
    names,
    ...(findApproval && { findApproval }),
  })
  const sender = createSender({
    ...common,
    outbox: state.outbox,
    recorder,
    post,
    secret: SECRET,
    host: 'receiver.example.test',
    random: () => 1,
  })
  t.teardown(() => sender.close())
  const waiting = async () => (await state.outbox.look()).waiting
  return { ...sender, recorder, state, store, fates, lines, waiting }
}
