package proof

import "time"

func processorTime() time.Duration { return 0 }
