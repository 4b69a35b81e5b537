import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { ApprovalDecision, ApprovalRequest } from '../../schemas/approvals.js'
import type { ConfirmConfig } from '../../schemas/config.js'

/**
 * Requests and decisions as they are stored: JSON with a code that only this server can make (HMAC-SHA-256), over the state that they are in
 * and, for a decision, over the whole request that it is about. So whoever can only write to that state can approve nothing, and move no
 * decision to another request (D143).
 */
export interface ApprovalSeals {
  sealRequest(request: ApprovalRequest): string
  /** Null for anything that was not sealed here under this id. */
  openRequest(id: string, sealed: string): ApprovalRequest | null
  sealDecision(sealedRequest: string, decision: ApprovalDecision): string
  /** Null for anything that was not sealed for exactly this request. */
  openDecision(sealedRequest: string, sealed: string): ApprovalDecision | null
}

const SEALED = /^([0-9a-f]{64})\.(.+)$/s

/** @param audience names the server and its state, as confirm tokens have it. */
export function createApprovalSeals({ hmacKey, previousHmacKey }: ConfirmConfig, audience: string): ApprovalSeals {
  const masters = [hmacKey, ...(previousHmacKey === undefined ? [] : [previousHmacKey])]
  const keysOf = (label: string) => masters.map((key) => Buffer.from(hkdfSync('sha256', key, '', label, 32)))
  const requests = createSeal(keysOf('svc-mcp approval request'))
  const decisions = createSeal(keysOf('svc-mcp approval decision'))
  const about = (sealedRequest: string) => [audience, createHash('sha256').update(sealedRequest).digest('hex')]
  return {
    sealRequest: (request) => requests.seal([audience, request.id], request),
    openRequest: (id, sealed) => requests.open([audience, id], sealed) as ApprovalRequest | null,
    sealDecision: (sealedRequest, decision) => decisions.seal(about(sealedRequest), decision),
    openDecision: (sealedRequest, sealed) => decisions.open(about(sealedRequest), sealed) as ApprovalDecision | null,
  }
}

/** Seals JSON values with the first key, in a context that must be the same when one is opened. */
export function createSeal(keys: readonly Buffer[]) {
  const codeOf = (key: Buffer, context: readonly unknown[], text: string) =>
    createHmac('sha256', key)
      .update(JSON.stringify([...context, text]))
      .digest()
  return {
    seal(context: readonly unknown[], value: unknown): string {
      const text = JSON.stringify(value)
      return `${codeOf(keys[0]!, context, text).toString('hex')}.${text}`
    },
    open(context: readonly unknown[], sealed: string): unknown {
      const [, code, text] = SEALED.exec(sealed) ?? []
      if (code === undefined || text === undefined) return null
      const given = Buffer.from(code, 'hex')
      return keys.some((key) => timingSafeEqual(codeOf(key, context, text), given))
        ? (JSON.parse(text) as unknown)
        : null
    },
  }
}
