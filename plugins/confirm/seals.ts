import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { ConfirmConfig } from '../../schemas/config.js'

/** The operator's key, and the one before it while keys are being changed: the first one signs, both are recognised. */
export type MasterKeys = Pick<ConfirmConfig, 'hmacKey' | 'previousHmacKey'>

/**
 * Labels under which keys are derived from the operator's key (HKDF, RFC 5869): one for each kind of thing that is signed, so that nothing
 * signed as one kind passes for another. A label that changes makes everything outstanding of its kind worthless.
 */
const LABELS = {
  challenge: 'svc-mcp challenge',
  request: 'svc-mcp approval request',
  decision: 'svc-mcp approval decision',
  requestState: 'svc-mcp request state',
  token: 'svc-mcp confirm token',
} as const

const derive = (master: Buffer, label: string, length: number) =>
  Buffer.from(hkdfSync('sha256', master, '', label, length))

const mastersOf = ({ hmacKey, previousHmacKey }: MasterKeys) =>
  previousHmacKey === undefined ? [hmacKey] : [hmacKey, previousHmacKey]

const codeOf = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest()

const isCode = (given: Buffer, key: Buffer, text: string) =>
  given.length === 32 && timingSafeEqual(codeOf(key, text), given)

const SEALED = /^([0-9a-f]{64})\.(.+)$/s

/**
 * Signs texts with HMAC-SHA-256, together with the facts that they are about, such as the caller and the state that they are in: a sealed text
 * opens only where all of these are the same. It is spelled as its code in hex, a dot, and the text. `signed` are the members of the text
 * that are signed one by one.
 */
export function createSeal(
  kind: Exclude<keyof typeof LABELS, 'token'>,
  masters: MasterKeys,
  signed: (text: string) => readonly unknown[] = (text) => [text],
) {
  const keys = mastersOf(masters).map((master) => derive(master, LABELS[kind], 32))
  const factsOf = (about: readonly unknown[], text: string) => JSON.stringify([...about, ...signed(text)])
  return {
    seal: (text: string, about: readonly unknown[]) =>
      `${codeOf(keys[0]!, factsOf(about, text)).toString('hex')}.${text}`,
    /** The text that was sealed with these facts; null for everything else. */
    open(sealed: string, about: readonly unknown[]): string | null {
      const [, code, text] = SEALED.exec(sealed) ?? []
      if (code === undefined || text === undefined) return null
      const [given, facts] = [Buffer.from(code, 'hex'), factsOf(about, text)]
      return keys.some((key) => isCode(given, key, facts)) ? text : null
    },
  }
}

/** The value of a sealed text that is JSON; null for none. */
export const parseSealed = <Value>(text: string | null): Value | null =>
  text === null ? null : (JSON.parse(text) as Value)

/**
 * The seal of confirm tokens, which travel through clients: a compact JWT (HS256) whose `typ` says that it is one and nothing else (RFC 8725,
 * 3.11). Its header can only be one of ours, so it is compared and never parsed: no token chooses its own algorithm or key.
 */
export function createTokenSeal(masters: MasterKeys) {
  const keys = mastersOf(masters).map((master) => ({
    header: encode({ alg: 'HS256', typ: 'confirm+jwt', kid: derive(master, `${LABELS.token} kid`, 8).toString('hex') }),
    secret: derive(master, LABELS.token, 32),
  }))
  return {
    sign(claims: object): string {
      const { header, secret } = keys[0]!
      const text = `${header}.${encode(claims)}`
      return `${text}.${codeOf(secret, text).toString('base64url')}`
    },
    /** The claims of a token that one of our keys signed, spelled exactly as it was signed; null for everything else. */
    verify(token: string): unknown {
      const [header, claims = '', code = '', ...more] = token.split('.')
      const key = keys.find((one) => one.header === header)
      if (key === undefined || more.length > 0) return null
      const given = Buffer.from(code, 'base64url')
      // The last character has bits that mean nothing, and a second spelling of a token must not pass for another one (RFC 4648, 3.5).
      if (given.toString('base64url') !== code || !isCode(given, key.secret, `${key.header}.${claims}`)) return null
      return JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'))
    },
  }
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
