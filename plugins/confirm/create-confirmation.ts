import type { ApprovalDesk, DecisionWatch, RequestStates } from '../../schemas/approvals.js'
import type { ConfirmConfig } from '../../schemas/config.js'
import type { ConfirmPort } from '../../schemas/confirmations.js'
import type { State } from '../../schemas/state.js'
import { type ApprovalsOptions, createApprovals } from './approvals.js'
import { byForm } from './by-form.js'
import { byPage } from './by-page.js'
import { byToken } from './by-token.js'
import { confirmCall, type Way } from './life.js'
import { paramsHash } from './params-hash.js'
import { rememberEnded } from './remember-ended.js'
import { createRequestStates } from './request-states.js'
import type { Tokens, TokensOptions } from './tokens.js'

/**
 * The options for a server with a login. People confirm calls with a confirm token or, if `config.approval` is set, on
 * a page.
 */
interface ServerOptions extends Omit<ApprovalsOptions, 'config' | 'rows' | 'endedHere'> {
  config: ConfirmConfig
  state: Pick<State, 'usedTokens' | 'challenges' | 'approvals'>
  /**
   * Creates the functions that issue, read and redeem confirm tokens. `createTokens` is passed as an option and not
   * imported, so that the stdio program does not load the JWT library.
   */
  createTokens: (options: TokensOptions) => Tokens
}

/** The options for a program without a login, whose client shows a form to its user. */
interface ClientOptions {
  config?: undefined
  /** Returns milliseconds since the epoch. */
  now: () => number
}

/**
 * Everything around the confirmation of calls: the part for the dispatcher, and the parts that the rest of the server
 * uses.
 */
export interface Confirmation extends ConfirmPort {
  /** Computes the hash of a call's arguments, `params_hash` (D19). */
  hash(args: Record<string, unknown>): string
  /**
   * The functions that seal and open the state of a question. The client receives the state with the question and sends
   * it back with the answer.
   */
  states: RequestStates
  /**
   * The functions for the confirm tokens that POST /confirm issues; undefined if calls are not confirmed with tokens.
   */
  tokens?: Tokens
  /**
   * The parts of the approval service that are used by the pages on which people decide and by the calls that wait for
   * a decision; undefined if there are no such pages.
   */
  approvals?: {
    desk: ApprovalDesk
    watch: DecisionWatch
    /** Writes audit entries about approval requests that have expired. Never rejects. */
    sweep(): Promise<void>
  }
  close(): void
}

/**
 * Creates the part of a server, or of the stdio program, that asks people to confirm calls. The configuration
 * determines how they are asked.
 */
export function createConfirmation(options: ServerOptions | ClientOptions): Confirmation {
  if (options.config === undefined) {
    const states = createRequestStates({ audience: 'stdio', now: options.now })
    return { ...confirmBy(byForm), states, close: nothing }
  }
  const { config, state, audience, now, publicUrl } = options
  const { usedTokens, challenges } = state
  const endedHere = rememberEnded()
  const states = createRequestStates({ keys: config, audience, usedTokens, endedHere, now })
  const { approval } = config
  if (approval === undefined) {
    const { isRevokedSince } = options
    const parts = { config, audience, usedTokens, challenges, endedHere, now }
    const tokens = options.createTokens({ ...parts, ...(isRevokedSince && { isRevokedSince }) })
    return { ...confirmBy(byToken(tokens, `${publicUrl}/confirm`)), states, tokens, close: nothing }
  }
  const service = createApprovals({ ...options, config: { ...config, approval }, rows: state.approvals, endedHere })
  return { ...confirmBy(byPage(service.approvals)), states, approvals: service, close: () => service.close() }
}

const confirmBy = (way: Way): Pick<Confirmation, 'admit' | 'hash'> => ({
  admit: (call) => confirmCall(call, way),
  hash: paramsHash,
})

const nothing = () => {}
