import { createHash } from 'node:crypto'
import { STYLE } from './style.js'

/**
 * The Content-Security-Policy of our pages: nothing runs, nothing is loaded, forms go to this server only. The style sheet is let in by its
 * hash, the icon stands inside the page as well.
 */
export const CONTENT_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')
