/** Every cell: mode × role × toolsets and tools × read-only × hidden or not × headers. What is listed is what may be called (D121). */
import t from 'tap'
import { lookWithLogin, lookWithoutLogin, SETTINGS } from './offer-cells.js'

const EITHER = [false, true]

t.test('without a login', async (t) => {
  for (const readOnly of EITHER) for (const setting of SETTINGS) await lookWithoutLogin(t, setting, readOnly)
})

for (const mode of ['shared', 'per_user'] as const)
  for (const readOnly of EITHER)
    for (const hideForbidden of EITHER)
      t.test(`${mode}, read-only ${readOnly}, hiding ${hideForbidden}`, async (t) => {
        for (const setting of SETTINGS) await lookWithLogin(t, mode, setting, { readOnly, hideForbidden })
      })
