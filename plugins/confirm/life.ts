import type { AuditFacts } from '../../schemas/audit.js'
import type { Approval, CallToConfirm, ConfirmReason, Outlook } from '../../schemas/confirmations.js'
import { type ErrorDetails, type FormQuestion, ToolError } from '../../schemas/errors.js'
import { paramsHash } from './params-hash.js'

/**
 * The life of a confirmation, which is the same for every way to ask:
 *
 *     unasked ── ask ──▶ asked ── yes ──▶ approved ── redeem ──▶ redeemed: this run of the call begins
 *        ▲                 │ └─── no ───▶ denied       │   └──▶ replayed: another run of it has begun
 *        └── out of time ──┴── out of time, or what the call would do has changed
 *
 * A call that comes with something that is out of time (`expired`) or was for something else (`stale`) is asked anew.
 */
export type Standing =
  /** Nobody has been asked about the call, or what they were asked is over. */
  | { state: 'unasked'; reason: ConfirmReason }
  /** A person has been asked and has not decided. */
  | { state: 'asked'; refusal: ToolError }
  /** A person has said no. It stands while the call would do what they were shown; `question` names what they were asked. */
  | { state: 'denied'; boundTo: string; question: string; refusal: ToolError }
  | Approved
  /** A yes came with the call, for this run and no other one. */
  | { state: 'redeemed'; boundTo: string }

interface Approved {
  state: 'approved'
  /** The digest of what was shown. */
  boundTo: string
  redeem(call: HashedCall): Promise<Redemption>
  /** For the audit entry of the run. */
  redeemed?: AuditFacts
  /** For the refusal of every further run. */
  replayed: { message: string; facts?: AuditFacts }
}

/** A call on its way through the states. */
export type HashedCall = CallToConfirm & { paramsHash: string }

/** Where a question is put and where its answer comes from: a token that the client fetches, a page, or a form of the client. */
export interface Way {
  /** Finds the state by what the call brings and by what is stored. Throws ToolError where this client cannot ask anybody. */
  find(call: HashedCall): Standing | Promise<Standing>
  /** Puts the question. Returns how it is answered, or the refusal of a call that somebody else has asked about in the meantime. */
  ask(call: HashedCall, question: Question): Asked | ToolError | Promise<Asked | ToolError>
}

interface Question {
  reason: ConfirmReason
  outlook: Outlook
  /** The question that this one takes the place of. */
  instead?: string
}

/** What `confirm_required` says beside the summary. */
export interface Asked {
  message: string
  hint: string
  details?: ErrorDetails
  /** For a transport that can put the question itself. */
  ask?: FormQuestion
}

/** The hint of ways that ask nobody where the preview failed. */
export const NOTHING_SHOWN = 'preview_error says why. Mend that, and call again.'

/** Leads a call through the states to the one run that was confirmed, or to the refusal that says what has to happen first. */
export async function confirmCall(sent: CallToConfirm, way: Way): Promise<Approval> {
  const call = { ...sent, paramsHash: paramsHash(sent.call.arguments) }
  call.note({ params_hash: call.paramsHash })
  const standing = await way.find(call)
  switch (standing.state) {
    case 'unasked':
      throw await ask(call, way, standing.reason)
    case 'asked':
      throw standing.refusal
    case 'denied':
      if (await isStillMeant(call, standing.boundTo)) throw standing.refusal
      throw await ask(call, way, 'stale', standing.question)
    case 'approved':
      return admit(call, way, standing)
    case 'redeemed':
      return { boundTo: standing.boundTo, paramsHash: call.paramsHash }
  }
}

async function admit(call: HashedCall, way: Way, standing: Approved): Promise<Approval> {
  const redemption = await standing.redeem(call)
  switch (redemption) {
    case 'spent':
      call.note(standing.redeemed ?? {})
      return { boundTo: standing.boundTo, paramsHash: call.paramsHash }
    case 'replayed':
      call.note(standing.replayed.facts ?? {})
      throw new ToolError('confirm_token_replay', standing.replayed.message, { params_hash: call.paramsHash })
    case 'expired':
    case 'stale':
      throw await ask(call, way, redemption)
  }
}

/** The refusal that shows what the call would do and says how that is confirmed. */
async function ask(call: HashedCall, way: Way, reason: ConfirmReason, instead?: string): Promise<ToolError> {
  const outlook = await call.look()
  const asked = await way.ask(call, { reason, outlook, instead })
  if (asked instanceof ToolError) return asked
  const own = { params_hash: call.paramsHash, reason, summary: outlook.summary, ...asked.details }
  // No tool can displace what the gate says.
  const details = { ...own, ...outlook.details, ...own }
  return new ToolError('confirm_required', asked.message, details, { hint: asked.hint, ask: asked.ask })
}

/** Whether the call would still do what somebody has said no to; where that cannot be told, the no stands. */
async function isStillMeant({ findBinding, context }: HashedCall, boundTo: string): Promise<boolean> {
  try {
    return (await findBinding()) === boundTo
  } catch (error) {
    if (context.signal.aborted) throw error
    return true
  }
}

/** `spent`: this run of the call alone may begin. `replayed`: another one has begun. Otherwise the yes lets nothing run. */
export type Redemption = 'spent' | 'replayed' | Lapse
export type Lapse = 'expired' | 'stale'

/** A yes, as its way keeps it. */
export interface Yes {
  /** The digest of what was shown. */
  boundTo: string | undefined
  /** Why it lets nothing run, whatever the call would do now: its time is over, nothing was shown, or who gave it no longer may. */
  lapsed: Lapse | null
  isUsed(): Promise<boolean>
  /** Ends it without a run; `replayed` where a run was faster. */
  lapse(why: Lapse): Promise<Redemption>
  /** Uses it up: of all attempts in any number of processes exactly one ever resolves with true, and then that is on the disk. */
  claim(): Promise<boolean>
}

/**
 * Redeems a yes for one run of what was shown. A yes that was used stays used, even if its time is over or the policy has changed since,
 * not least by the run that it was used for. Its time is judged once, before `findBinding`, which may take longer than it lives (D76). What
 * `findBinding` rejects with comes through, unless another run turns out to have begun. Rejects with the reason of `signal` where that is
 * aborted before the claim.
 */
export async function redeem(yes: Yes, findBinding: () => Promise<string>, signal?: AbortSignal): Promise<Redemption> {
  if (yes.lapsed !== null) return yes.lapse(yes.lapsed)
  let isSame: boolean
  try {
    isSame = (await findBinding()) === yes.boundTo
  } catch (error) {
    // Another run may have made what could not be found.
    if (await yes.isUsed()) return 'replayed'
    throw error
  }
  if (!isSame) return yes.lapse('stale')
  // A client that is gone will not learn the outcome, and must be able to call again.
  signal?.throwIfAborted()
  return (await yes.claim()) ? 'spent' : 'replayed'
}
