import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { ConfirmConfig } from '../../schemas/config.js'

/**
 * The operator's key, and the previous one while keys are being changed. Only the current key signs, but both are
 * accepted.
 */
export type MasterKeys = Pick<ConfirmConfig, 'hmacKey' | 'previousHmacKey'>

/**
 * Labels for deriving keys from the operator's key (HKDF, RFC 5869). Each kind of signed data has its own, so that one
 * kind cannot pass as another. Changing a label invalidates all outstanding data of its kind.
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
 * Creates a seal, which signs texts with HMAC-SHA-256 together with the facts that they are about, such as the caller
 * and the server's state. A sealed text can only be opened with the same facts. It consists of the code in hex, a dot,
 * and the text. `signed` returns the parts of the text that are signed individually.
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
    /** Returns the text if it was sealed with these facts, and null for anything else. */
    open(sealed: string, about: readonly unknown[]): string | null {
      const [, code, text] = SEALED.exec(sealed) ?? []
      if (code === undefined || text === undefined) return null
      const [given, facts] = [Buffer.from(code, 'hex'), factsOf(about, text)]
      return keys.some((key) => isCode(given, key, facts)) ? text : null
    },
  }
}

/** Parses a sealed JSON text; null stays null. */
export const parseSealed = <Value>(text: string | null): Value | null =>
  text === null ? null : (JSON.parse(text) as Value)

/** A key that signs confirm tokens, with its name in tokens: a fingerprint that reveals nothing about the key. */
export interface TokenKey {
  kid: string
  secret: Buffer
}

/** Derives the keys of confirm tokens. The first key signs, but tokens of all keys are accepted. */
export const deriveTokenKeys = (masters: MasterKeys): TokenKey[] =>
  mastersOf(masters).map((master) => ({
    kid: derive(master, `${LABELS.token} kid`, 8).toString('hex'),
    secret: derive(master, LABELS.token, 32),
  }))
