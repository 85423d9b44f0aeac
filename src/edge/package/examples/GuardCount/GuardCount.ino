// A guard with its state in the EEPROM: both slots must have been programmed, with the new state of
// `radabound edge header`.  Each line that arrives is a model's losses, a 0 or 1 for each sample.
#include <EEPROM.h>
#include <radabound_edge.h>

static int readSlot(void *, int slot, void *bytes) {
  for (int i = 0; i < RADABOUND_EDGE_STATE_BYTES; i++)
    ((uint8_t *)bytes)[i] = EEPROM.read(slot * RADABOUND_EDGE_STATE_BYTES + i);
  return 0;
}

static int writeSlot(void *, int slot, const void *bytes) {
  for (int i = 0; i < RADABOUND_EDGE_STATE_BYTES; i++)
    EEPROM.update(slot * RADABOUND_EDGE_STATE_BYTES + i, ((const uint8_t *)bytes)[i]);
  return 0;
}

static const radabound_edge_storage storage = {readSlot, writeSlot, nullptr};
static radabound_edge guard;
static bool refused;  // a loss of this line: it is longer than a row

static void startLine() {
  refused = false;
  if (radabound_edge_init(&guard, &storage) != RADABOUND_EDGE_OK)
    Serial.println("no state");
}

void setup() {
  Serial.begin(115200);
  startLine();
}

void loop() {
  if (!Serial.available())
    return;
  const int c = Serial.read();
  if (c == '0' || c == '1') {
    if (radabound_edge_push(&guard, c - '0') != RADABOUND_EDGE_OK)
      refused = true;
  } else if (c == '\n') {
    uint32_t errors;
    if (!refused && radabound_edge_finish(&guard, &errors) == RADABOUND_EDGE_OK)
      Serial.println(errors);
    else
      Serial.println(radabound_edge_halted(&guard) ? "halted" : "not judged");
    if (refused)
      startLine();  // which drops the row
  }
}
