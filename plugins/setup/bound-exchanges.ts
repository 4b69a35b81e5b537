import { ToolError } from '../../schemas/errors.js'

/** Callbacks worked on at a time. Each costs the identity provider a request, and is over within seconds. */
const MOST_EXCHANGES = 16
/** Seconds: about as long as a provider that hangs may keep a place. */
const RETRY_AFTER = 5

export type RunExchange = <Result>(exchange: () => Promise<Result>) => Promise<Result>

/**
 * Runs exchanges with the identity provider, a bounded number at a time: anybody can begin logins, and come back from them at the same
 * moment. Rejects with ToolError `overloaded {retry_after}`, and begins nothing, beyond the bound.
 */
export function boundExchanges(): RunExchange {
  let running = 0
  return async (exchange) => {
    if (running >= MOST_EXCHANGES) throw tooMany()
    running++
    try {
      return await exchange()
    } finally {
      running--
    }
  }
}

const tooMany = () =>
  new ToolError(
    'overloaded',
    'Very many people are logging in at this moment.',
    { retry_after: RETRY_AFTER },
    { hint: 'Reload this page in a few seconds: your login is not lost.' },
  )
