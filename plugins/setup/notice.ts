import type { ServiceError } from '../errors/convert.js'

/** One thing the page has to say at its top. Travels in the session cookie from a form to the page after it, so it is short. */
export interface Notice {
  kind: 'good' | 'warning' | 'bad'
  title: string
  text: string
}

const LONGEST_TEXT = 400

export const notice = (kind: Notice['kind'], title: string, text = ''): Notice => ({
  kind,
  title,
  text: text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text,
})

/** An error of a tool call, with what can be done about it. */
export const noticeOf = (title: string, { message, hint }: Pick<ServiceError, 'message' | 'hint'>): Notice =>
  notice('bad', title, hint === undefined ? message : `${message} ${hint}`)
