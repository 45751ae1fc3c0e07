// Validates evidence against the official schemas: node validate.mjs FOLDER... prints one line for every file of each
// folder, "FILE: valid" or "FILE: PLACE MESSAGE", and exits 1 when one is not valid.
import { readFileSync } from "node:fs";
import Ajv from "ajv";
import Draft4 from "ajv-draft-04";
import formats from "ajv-formats";
import moreFormats from "ajv-formats-draft2019";

const read = (path) => JSON.parse(readFileSync(path, "utf8"));

function validator(Class, schema, others) {
  // The schema of SARIF has a pattern that is none in Unicode mode, and both name formats that ajv does not know.
  const ajv = new Class({ strict: false, allErrors: true, unicodeRegExp: false });
  formats(ajv);
  moreFormats(ajv);
  for (const other of others) ajv.addSchema(other);
  return ajv.compile(schema);
}

// CycloneDX's schema names the two others by their files.
const cyclonedx = "node_modules/@cyclonedx/cyclonedx-library/res/schema";
const part = (name) => ({ ...read(`${cyclonedx}/${name}`), $id: `http://cyclonedx.org/schema/${name}` });
const forms = {
  "bom.cdx.json": validator(Ajv, read(`${cyclonedx}/bom-1.6.SNAPSHOT.schema.json`), [
    part("spdx.SNAPSHOT.schema.json"),
    part("jsf-0.82.SNAPSHOT.schema.json"),
  ]),
  "results.sarif": validator(Draft4, read("node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"), []),
};

let code = 0;
for (const folder of process.argv.slice(2))
  for (const [name, validate] of Object.entries(forms)) {
    const path = `${folder}/${name}`;
    if (validate(read(path))) {
      console.log(`${path}: valid`);
      continue;
    }
    code = 1;
    for (const { instancePath, message } of validate.errors) console.log(`${path}: ${instancePath} ${message}`);
  }
process.exit(code);
