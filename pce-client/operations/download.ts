import type { Http } from '../transport.js'
import type { RequestOptions } from '../types.js'
import { below } from './create-calls.js'

/** Takes a download piece by piece, so that it is never held as a whole. */
export interface DownloadSink {
  /** Before the first piece, and again when a download that broke off starts from its beginning: forget what was taken. */
  begin(): void
  /** Awaited, so that a slow taker slows the download. */
  take(chunk: Uint8Array): void | Promise<void>
}

export interface DownloadOptions extends RequestOptions {
  sink: DownloadSink
}

/** What every download of a file offers: its bytes, or their number once a sink has taken them. */
export interface Download<Of> {
  (of: Of, options: DownloadOptions): Promise<{ bytes: number }>
  (of: Of, options?: RequestOptions): Promise<Uint8Array>
}

/**
 * A file as a stream: however large, and without a deadline of its own unless the caller sets one, since a transfer that goes
 * on is no failure. A transfer that breaks off is begun again by the retry policy.
 */
export function createDownload<Of>(http: Http, pathOf: (of: Of) => string): Download<Of> {
  async function download(of: Of, { sink, ...options }: Partial<DownloadOptions> = {}) {
    const pieces: Uint8Array[] = []
    let bytes = 0
    const headers = { accept: '*/*', ...options.headers }
    await http.stream(
      pathOf(of),
      { ...below(options), headers, streamed: true },
      {
        begin: () => {
          pieces.length = 0
          bytes = 0
          sink?.begin()
        },
        take: (chunk) => {
          bytes += chunk.length
          if (sink !== undefined) return sink.take(chunk)
          pieces.push(chunk)
        },
      },
    )
    return sink === undefined ? Buffer.concat(pieces) : { bytes }
  }
  return download as Download<Of>
}
