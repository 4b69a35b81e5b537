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
 * - From `unasked`: a person is asked (`asked`).
 * - From `asked`: the person says yes (`approved`) or no (`denied`), or the time runs out (`unasked`).
 * - From `denied`: the call stays refused as long as it would do the same; otherwise, the person is asked anew (`asked`).
 * - From `approved`: the call runs (`redeemed`), but only once: a further run is refused (`replayed`). If the approval has
 *   expired (`expired`), or the call would now do something else (`stale`), the person is asked anew (`asked`).
 */
export type Standing =
  /** Nobody has been asked about the call, or an earlier question about it is void. */
  | { state: 'unasked'; reason: ConfirmReason }
  /** A person has been asked but has not decided. */
  | { state: 'asked'; refusal: ToolError }
  /**
   * A person has refused the call. The refusal is valid as long as the call would still do what was shown. `question`
   * is the id of the question.
   */
  | { state: 'denied'; boundTo: string; question: string; refusal: ToolError }
  | Approved
  /** The call carries an approval that is valid for this run only. */
  | { state: 'redeemed'; boundTo: string }

interface Approved {
  state: 'approved'
  /** The digest of what was shown to the person. */
  boundTo: string
  redeem(call: HashedCall): Promise<Redemption>
  /** The guardrails that the approval overrides. */
  overrides?: Approval['overrides']
  /** Facts to add to the audit entry of the run. */
  redeemed?: AuditFacts
  /** The message and the audit facts for every further run, which is refused because the approval has been used. */
  replayed: { message: string; facts?: AuditFacts }
}

/** A call that is being confirmed, with the hash of its arguments. */
export type HashedCall = CallToConfirm & { paramsHash: string }

/** A way of asking a person: with a token that the client fetches, on a page, or with a form in the client. */
export interface Way {
  /** True if the person decides on a page. */
  readonly hasPage?: true
  /**
   * Determines the state of the confirmation from the arguments of the call and from the store. Throws ToolError if
   * this client has no way to ask a person.
   */
  find(call: HashedCall): Standing | Promise<Standing>
  /**
   * Asks the question. Returns how it can be answered, or a refusal if another call has already asked the same
   * question.
   */
  ask(call: HashedCall, question: Question): Asked | ToolError | Promise<Asked | ToolError>
}

interface Question {
  reason: ConfirmReason
  outlook: Outlook
  /** The id of the outdated question that this question replaces. */
  instead?: string
}

/** The parts of the error `confirm_required` that depend on the way of asking. */
export interface Asked {
  message: string
  hint: string
  details?: ErrorDetails
  /** The question, for a transport that can itself ask the user of the client. */
  ask?: FormQuestion
}

/** The hint for a call whose preview failed, so that nobody could be asked. */
export const NOTHING_SHOWN = 'preview_error says why. Fix that, and call again.'

/**
 * Finds out where the confirmation of a call stands, and does the next step. Returns the approval if the call may run
 * now; otherwise, throws a refusal that says what must happen first.
 */
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
      return {
        boundTo: standing.boundTo,
        paramsHash: call.paramsHash,
        ...(standing.overrides && { overrides: standing.overrides }),
      }
    case 'replayed':
      call.note(standing.replayed.facts ?? {})
      throw new ToolError('confirm_token_replay', standing.replayed.message, { params_hash: call.paramsHash })
    case 'expired':
    case 'stale':
      throw await ask(call, way, redemption)
  }
}

/** Builds the refusal that shows what the call would do and how to confirm it. */
async function ask(call: HashedCall, way: Way, reason: ConfirmReason, instead?: string): Promise<ToolError> {
  const outlook = await call.look(way.hasPage === true)
  const asked = await way.ask(call, { reason, outlook, instead })
  if (asked instanceof ToolError) return asked
  const { guardrails = [] } = call
  const touched = guardrails.length > 0 && { guardrails: [...guardrails] }
  const own = { params_hash: call.paramsHash, reason, summary: outlook.summary, ...touched, ...asked.details }
  // The gate's own details are spread twice: at the beginning so that they are listed first, and at the end so that
  // details of a tool cannot overwrite them.
  const details = { ...own, ...outlook.details, ...own }
  return new ToolError('confirm_required', asked.message, details, { hint: asked.hint, ask: asked.ask })
}

/**
 * Returns true if the call would still do what a person refused, or if this cannot be determined. The refusal is then
 * still valid.
 */
async function isStillMeant({ findBinding, context }: HashedCall, boundTo: string): Promise<boolean> {
  try {
    return (await findBinding()) === boundTo
  } catch (error) {
    if (context.signal.aborted) throw error
    return true
  }
}

/**
 * The result of redeeming an approval. With `spent`, this run may begin, and no other. With `replayed`, another run has
 * already begun. With any other result, the approval permits no run.
 */
export type Redemption = 'spent' | 'replayed' | Lapse
export type Lapse = 'expired' | 'stale'

/** An approval, with the operations on its stored record. */
export interface Yes {
  /** The digest of what was shown to the person. */
  boundTo: string | undefined
  /**
   * The reason why the approval permits no run, whatever the call would do now: it has expired, nothing was shown, or
   * the person who gave it may no longer do so. Null if there is no such reason.
   */
  lapsed: Lapse | null
  isUsed(): Promise<boolean>
  /**
   * Gives up an approval that permits no run. Resolves with `why`, or with `replayed` if a run has already used the
   * approval.
   */
  lapse(why: Lapse): Promise<Redemption>
  /**
   * Claims the approval for a run. Only one attempt, in all processes together, ever resolves with true, and only after
   * the claim is on the disk.
   */
  claim(): Promise<boolean>
}

/**
 * Redeems an approval, so that the approved call runs once. Once an approval was used, it stays used, even if it has
 * expired since or the policy has changed, perhaps because of that run. Expiry is checked only before `findBinding`,
 * because `findBinding` may take longer than the approval is valid (D76). If `findBinding` rejects, this function
 * rejects too, unless another request has already started the run. If `signal` is aborted before the claim, it rejects
 * with the reason of the signal.
 */
export async function redeem(yes: Yes, findBinding: () => Promise<string>, signal?: AbortSignal): Promise<Redemption> {
  if (yes.lapsed !== null) return yes.lapse(yes.lapsed)
  let isSame: boolean
  try {
    isSame = (await findBinding()) === yes.boundTo
  } catch (error) {
    // Another run may have caused the error, for example by deleting an object.
    if (await yes.isUsed()) return 'replayed'
    throw error
  }
  if (!isSame) return yes.lapse('stale')
  // A client that has disconnected will not see the outcome, so the approval is kept for another call.
  signal?.throwIfAborted()
  return (await yes.claim()) ? 'spent' : 'replayed'
}
