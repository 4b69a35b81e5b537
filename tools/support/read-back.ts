/**
 * An object that was just created, as it is stored. It exists by now, so not being able to look at it again is a warning and no
 * failure. `warnings` is the answer's optional property.
 */
export async function readBack<T>(
  created: T,
  read: () => Promise<T>,
): Promise<{ stored: T; warnings: { warnings?: string[] } }> {
  try {
    return { stored: await read(), warnings: {} }
  } catch {
    const text = 'It was created, but could not be read back to check what was stored.'
    return { stored: created, warnings: { warnings: [text] } }
  }
}
