/**
 * An object that was just created, as it is stored. It exists by now, so not being able to look at it again is a warning and no
 * failure. `warnings` is the answer's optional property.
 */
export async function readBack<T extends { href: string }>(
  created: T,
  read: () => Promise<T>,
): Promise<{ stored: T; warnings: { warnings?: string[] } }> {
  try {
    return { stored: requireObject(await read()), warnings: {} }
  } catch {
    const text = 'It was created, but could not be read back to check what was stored.'
    return { stored: created, warnings: { warnings: [text] } }
  }
}

/** What was read, if it is an object of the PCE: what answers in its place may send any JSON, of which no answer can be made. */
export function requireObject<T extends { href: string }>(read: T): T {
  if (typeof (read as Partial<T> | null)?.href === 'string') return read
  throw new Error('something else than the object was read')
}
