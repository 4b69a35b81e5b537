import { notice, noticeOf, type Notice } from './notice.js'
import type { ToolAnswer } from './ports.js'

/** What the page says after a registration: an unreachable PCE is a warning, not a loss (D18). */
export function describeRegistration(value: object): Notice {
  const { connection } = value as { connection?: { ok: boolean; error?: { message: string } } }
  if (connection?.ok === false) {
    const reason = connection.error?.message ?? 'It did not answer.'
    return notice('warning', 'Your credentials are stored, but the PCE could not be used with them yet.', reason)
  }
  const tried = connection?.ok === true ? 'The PCE accepted them.' : ''
  return notice('good', 'Your PCE credentials are stored.', `${tried} Every tool of your role is available now.`.trim())
}

export function describeRemoval(value: object): Notice {
  const { status } = value as { status?: string }
  return status === 'noop'
    ? notice('warning', 'There were no credentials to remove.')
    : notice('good', 'Your PCE credentials are removed.', 'Tools that need a PCE no longer work for you.')
}

export function describeTest(answer: ToolAnswer): Notice {
  if (!answer.ok) return noticeOf('The PCE could not be used.', answer.error)
  const { version, latency_ms: latency } = answer.value as { version?: string; latency_ms?: number }
  const release = version === undefined ? '' : ` It runs release ${version}.`
  const time = latency === undefined ? '' : ` It took ${latency} ms.`
  return notice('good', 'The PCE answered and accepts your credentials.', `${release}${time}`.trim())
}
