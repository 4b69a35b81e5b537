/** Returns `name:secret` of a Basic Authorization header, or null for anything else. */
export function readBasic(header: string | undefined): string | null {
  const basic = /^Basic\s+([A-Za-z0-9+/=]+)$/i.exec(header ?? '')
  return basic ? Buffer.from(basic[1]!, 'base64').toString('utf8') : null
}
