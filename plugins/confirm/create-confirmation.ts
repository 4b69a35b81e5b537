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

/** Options for servers with a login. People confirm calls with a token, or on a page if `config.approval` says so. */
interface ServerOptions extends Omit<ApprovalsOptions, 'config' | 'rows' | 'endedHere'> {
  config: ConfirmConfig
  state: Pick<State, 'usedTokens' | 'challenges' | 'approvals'>
  /**
   * Creates the confirm tokens. This function is an option instead of an import, so that the stdio program does not
   * load the JWT library.
   */
  createTokens: (options: TokensOptions) => Tokens
}

/** Options for programs without a login, where the client shows a form to its user. */
interface ClientOptions {
  config?: undefined
  /** Returns milliseconds since the epoch. */
  now: () => number
}

/** Everything that a server needs to have calls confirmed, including what other parts of the server use. */
export interface Confirmation extends ConfirmPort {
  /** Computes the hash of a call's arguments, `params_hash` (D19). */
  hash(args: Record<string, unknown>): string
  /** The sealed states that the client receives with a question and sends back with the answer. */
  states: RequestStates
  /** Confirm tokens for POST /confirm; undefined if calls are not confirmed with tokens. */
  tokens?: Tokens
  /**
   * Approvals for the pages on which people decide, and for calls that wait for a decision; undefined if there are no
   * such pages.
   */
  approvals?: {
    desk: ApprovalDesk
    watch: DecisionWatch
    /** Writes audit entries about requests that have expired. Never rejects. */
    sweep(): Promise<void>
  }
  close(): void
}

/** Creates the confirmation of a server. Its configuration determines how people are asked. */
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
    const tokens = options.createTokens({ config, audience, usedTokens, challenges, endedHere, now })
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
