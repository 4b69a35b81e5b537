import { createHmac } from 'node:crypto'

/**
 * Returns the headers of Standard Webhooks for one attempt to send a message. The signature covers the id, the time of
 * the attempt in seconds since the epoch, and the exact bytes of the body.
 */
export function signMessage(secret: Buffer, { id, body }: { id: string; body: string }, seconds: number) {
  const signature = createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  }
}
