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

/** A key of confirm tokens, with the name that tokens give it: a fingerprint that says nothing about the key. */
export interface TokenKey {
  kid: string
  secret: Buffer
}

/** The keys of confirm tokens: the first one signs, all are recognised. */
export const deriveTokenKeys = (masters: MasterKeys): TokenKey[] =>
  mastersOf(masters).map((master) => ({
    kid: derive(master, `${LABELS.token} kid`, 8).toString('hex'),
    secret: derive(master, LABELS.token, 32),
  }))
