import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { ConfirmConfig } from '../../schemas/config.js'

/**
 * The operator's current key and, while keys are being changed, the previous one. Both keys are accepted, but only the
 * current key signs.
 */
export type MasterKeys = Pick<ConfirmConfig, 'hmacKey' | 'previousHmacKey'>

/**
 * The labels with which keys are derived from the operator's key (HKDF, RFC 5869). There is one label for each type of
 * signed data, so that data of one type cannot pass as another. Changing a label invalidates all existing data of its
 * type.
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
 * Creates a seal, which signs strings with HMAC-SHA-256. A signature also covers facts about the string, such as the
 * caller and the server's state, and the sealed string can be opened only with the same facts. It consists of the
 * signature in hex, a dot, and the original string. `signed` returns everything that the signature covers.
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
    /** Returns the original string if it was sealed with these facts; returns null for any other input. */
    open(sealed: string, about: readonly unknown[]): string | null {
      const [, code, text] = SEALED.exec(sealed) ?? []
      if (code === undefined || text === undefined) return null
      const [given, facts] = [Buffer.from(code, 'hex'), factsOf(about, text)]
      return keys.some((key) => isCode(given, key, facts)) ? text : null
    },
  }
}

/** Parses the JSON text from an opened seal; returns null for null. */
export const parseSealed = <Value>(text: string | null): Value | null =>
  text === null ? null : (JSON.parse(text) as Value)

/**
 * A key that signs confirm tokens, with the name by which tokens refer to it. The name is a fingerprint that does not
 * reveal the key.
 */
export interface TokenKey {
  kid: string
  secret: Buffer
}

/**
 * Derives the keys of confirm tokens. Tokens signed with any of the keys are accepted, but only the first key signs.
 */
export const deriveTokenKeys = (masters: MasterKeys): TokenKey[] =>
  mastersOf(masters).map((master) => ({
    kid: derive(master, `${LABELS.token} kid`, 8).toString('hex'),
    secret: derive(master, LABELS.token, 32),
  }))
