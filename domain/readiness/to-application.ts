import type { Label } from '../../schemas/pce/label.js'
import type { Application } from '../traffic/applications.js'

/** The application that its app and its env label, in this order, make. */
export function toApplication([app, env]: readonly Label[]): Application {
  return { app: app?.value ?? '', env: env?.value ?? '' }
}
