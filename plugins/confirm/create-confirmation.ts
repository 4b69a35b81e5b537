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
import { createRequestStates } from './request-states.js'
import type { Tokens, TokensOptions } from './tokens.js'

/** Where people log in: they confirm by a token, or on a page where `config.approval` says so. */
interface ServerOptions extends Omit<ApprovalsOptions, 'config' | 'rows'> {
  config: ConfirmConfig
  state: Pick<State, 'usedTokens' | 'challenges' | 'approvals'>
  /** Handed in, because the JWT library behind it must not be what stdio loads. */
  createTokens: (options: TokensOptions) => Tokens
}

/** Where nobody logs in: the client of the process asks its person by a form. */
interface ClientOptions {
  config?: undefined
  /** Milliseconds since the epoch. */
  now: () => number
}

/** How calls are confirmed at one server, with all that its other parts need for that. */
export interface Confirmation extends ConfirmPort {
  /** `params_hash` of arguments (D19). */
  hash(args: Record<string, unknown>): string
  /** What a question to a person carries through their client. */
  states: RequestStates
  /** For POST /confirm; absent where no token is of any use. */
  tokens?: Tokens
  /** For the pages where people approve calls, and for whoever waits for them; absent where there are none. */
  approvals?: {
    desk: ApprovalDesk
    watch: DecisionWatch
    /** Tells the audit log what has expired. Never rejects. */
    sweep(): Promise<void>
  }
  close(): void
}

/** Makes the one confirmation of a server, by the one way to ask that its configuration chooses. */
export function createConfirmation(options: ServerOptions | ClientOptions): Confirmation {
  if (options.config === undefined) {
    const states = createRequestStates({ audience: 'stdio', now: options.now })
    return { ...confirmBy(byForm), states, close: nothing }
  }
  const { config, state, audience, now, publicUrl } = options
  const { usedTokens, challenges } = state
  const states = createRequestStates({ keys: config, audience, usedTokens, now })
  const { approval } = config
  if (approval === undefined) {
    const tokens = options.createTokens({ config, audience, usedTokens, challenges, now })
    return { ...confirmBy(byToken(tokens, `${publicUrl}/confirm`)), states, tokens, close: nothing }
  }
  const service = createApprovals({ ...options, config: { ...config, approval }, rows: state.approvals })
  return { ...confirmBy(byPage(service.approvals)), states, approvals: service, close: () => service.close() }
}

const confirmBy = (way: Way): Pick<Confirmation, 'admit' | 'hash'> => ({
  admit: (call) => confirmCall(call, way),
  hash: paramsHash,
})

const nothing = () => {}
